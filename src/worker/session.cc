// SPDX-License-Identifier: Apache-2.0
#include "worker/session.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "worker/session_impl.h"

namespace mc::worker {
namespace {

using sandbox::Child;
using sandbox::Ending;

// A short name of a request, such as "trial 3"; "" for requests while calls are timed.
std::string summary_of(std::string_view request) {
  const auto json = nlohmann::json::parse(request, nullptr, false);
  const std::string operation = json.is_object() ? json.value("op", "") : "";
  if (operation.starts_with("time")) return "";
  return json.contains("index") ? operation + " " + json["index"].dump() : operation;
}

// The limit of a wait, reduced to the time that is left for all responses.
std::chrono::duration<double> bounded(const Session::Impl& impl,
                                      std::chrono::duration<double> limit) {
  if (impl.time == nullptr) return limit;
  const std::chrono::duration<double> left = impl.time->left - (Child::Clock::now() - impl.asked);
  return std::min(limit, left);
}

struct ToCallResult {
  CallResult operator()(const sandbox::Exited& exited) const { return ProcessEnd{0, exited.code}; }
  CallResult operator()(const sandbox::Signaled& signaled) const {
    return ProcessEnd{signaled.signal, 0};
  }
  CallResult operator()(const sandbox::TimedOut&) const { return LimitExceeded{Limit::kWall}; }
  CallResult operator()(const sandbox::CpuExceeded&) const { return LimitExceeded{Limit::kCpu}; }
  CallResult operator()(const sandbox::MemoryExceeded&) const {
    return LimitExceeded{Limit::kMemory};
  }
  CallResult operator()(const sandbox::ThreadsExceeded&) const {
    return LimitExceeded{Limit::kThreads};
  }
};

// Watches the child's end and limits while a message is in transit.
class Watch {
 public:
  Watch(Session::Impl& impl, std::chrono::duration<double> limit)
      : impl_(impl),
        deadline_(Child::Clock::now() + std::chrono::duration_cast<Child::Clock::duration>(limit)) {
  }

  Channel::Wait wait() {
    return [this](int fd, short events) -> Status {
      const auto ready = events == POLLIN ? Child::Ready::kToRead : Child::Ready::kToWrite;
      ending_ = impl_.child->await({.fd = fd, .ready = ready, .deadline = deadline_});
      if (ending_) return Error{ErrorCode::kUnavailable, "the child ended"};
      return ok();
    };
  }

  // The result after a failed message.  The child is dead afterwards.
  CallResult why_not(const Error& error) {
    // A closed channel is often the first sign of a death.
    if (!ending_ && error.code == ErrorCode::kUnavailable)
      ending_ = impl_.child->await({.deadline = deadline_});
    impl_.child->kill_tree();
    log_debug(
        fmt::format("{}: {}", impl_.name, ending_ ? sandbox::describe(*ending_) : error.message));
    if (ending_) return std::visit(ToCallResult{}, *ending_);
    return MalformedReply{error.message};
  }

 private:
  Session::Impl& impl_;
  Child::Clock::time_point deadline_;
  std::optional<Ending> ending_;
};

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  MC_CHECK(impl_ != nullptr);
}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() {
  if (impl_ != nullptr) log_debug(fmt::format("{}: ends", impl_->name));
}

CallResult Session::call(std::string_view request, const Fd* region,
                         std::chrono::duration<double> limit) {
  const auto start = Child::Clock::now();
  send(request, region, limit);
  return receive(limit - (Child::Clock::now() - start));
}

void Session::send(std::string_view request, const Fd* region,
                   std::chrono::duration<double> limit) {
  MC_CHECK(!impl_->owes_response);
  MC_CHECK(region == nullptr || region->is_open());
  resume();
  MC_CHECK(!impl_->is_suspended);
  impl_->owes_response = true;
  impl_->asked = Child::Clock::now();
  if (is_log_enabled()) impl_->request = summary_of(request);
  // A child must not send anything before a request.  Unread descriptors would also count against
  // all children of this user.
  if (impl_->channel.has_unread()) {
    impl_->child->kill_tree();
    impl_->unsent = MalformedReply{"it spoke before it was asked"};
    return;
  }
  Watch watch(*impl_, bounded(*impl_, limit));
  std::vector<int> fds;
  if (region != nullptr) fds.push_back(region->get());
  const Status sent = impl_->channel.send(request, fds, watch.wait());
  if (!sent) impl_->unsent = watch.why_not(sent.error());
}

void Session::charge(TimeBudget* time) { impl_->time = time; }

CallResult Session::receive(std::chrono::duration<double> limit) {
  MC_CHECK(impl_->owes_response && !impl_->is_suspended);
  const bool is_last = impl_->time != nullptr && impl_->time->left <= limit;
  CallResult response = receive_within(limit);
  if (impl_->time == nullptr) return response;
  impl_->time->left -= Child::Clock::now() - impl_->asked;
  const auto* overrun = std::get_if<LimitExceeded>(&response);
  const bool is_late = overrun != nullptr && overrun->limit == Limit::kWall;
  if (is_late && is_last) impl_->time->left = std::min(impl_->time->left, {});
  if (is_late && impl_->time->left.count() <= 0) return LimitExceeded{Limit::kAllCalls};
  return response;
}

CallResult Session::receive_within(std::chrono::duration<double> limit) {
  impl_->owes_response = false;
  if (impl_->unsent) return std::move(*std::exchange(impl_->unsent, std::nullopt));
  Watch watch(*impl_, bounded(*impl_, limit));
  auto message = impl_->channel.receive(watch.wait());
  if (!message) return watch.why_not(message.error());
  if (!impl_->request.empty()) {
    const std::chrono::duration<double, std::milli> taken = Child::Clock::now() - impl_->asked;
    log_debug(fmt::format("{}: {} took {:.0f} ms", impl_->name, impl_->request, taken.count()));
  }
  if (is_ok(message->json)) return Reply{std::move(message->json), std::move(message->region)};
  auto refusal = decode_refusal(message->json);
  if (refusal) return std::move(refusal).value();
  impl_->child->kill_tree();
  return MalformedReply{refusal.error().message};
}

void Session::suspend() {
  if (std::exchange(impl_->owes_response, false)) return end();
  impl_->is_suspended = true;
  impl_->child->stop();
}

void Session::resume() {
  if (std::exchange(impl_->is_suspended, false)) impl_->child->go_on();
}

bool Session::has_news(std::chrono::milliseconds wait) {
  if (impl_->unsent) return true;
  return impl_->child->has_news(impl_->channel.fd(), wait);
}

void Session::end() { impl_->child->kill_tree(); }

Result<std::vector<std::filesystem::path>> Session::mount_artifacts(
    const std::vector<std::filesystem::path>& libraries) {
  MC_CHECK(!std::exchange(impl_->has_mounted, true));
  if (!impl_->sees_mount) return libraries;
  MC_CHECK(impl_->artifacts.has_value());
  MC_TRY_VOID(impl_->artifacts->put(libraries), "artifacts");
  std::vector<std::filesystem::path> shown;
  for (size_t i = 0; i < libraries.size(); ++i) shown.push_back(mounted_path(i, libraries[i]));
  return shown;
}

std::string Session::output_tail() const { return impl_->output.text(); }

int64_t Session::memory_peak_bytes() const { return impl_->child->memory_peak_bytes(); }

}  // namespace mc::worker
