// SPDX-License-Identifier: Apache-2.0
#include "worker/session.h"

#include <algorithm>
#include <utility>

#include <poll.h>

#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "worker/session_impl.h"

namespace mc::worker {
namespace {

using sandbox::Child;
using sandbox::Ending;

// A short name of a request, such as "trial 3"; "" for requests while calls are timed.
std::string summary_of(std::string_view question) {
  const auto json = nlohmann::json::parse(question, nullptr, false);
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

struct ToAnswer {
  Answer operator()(const sandbox::Exited& exited) const { return ProcessEnd{0, exited.code}; }
  Answer operator()(const sandbox::Signaled& signaled) const {
    return ProcessEnd{signaled.signal, 0};
  }
  Answer operator()(const sandbox::TimedOut&) const { return LimitExceeded{Limit::kWall}; }
  Answer operator()(const sandbox::CpuExceeded&) const { return LimitExceeded{Limit::kCpu}; }
  Answer operator()(const sandbox::MemoryExceeded&) const { return LimitExceeded{Limit::kMemory}; }
  Answer operator()(const sandbox::ThreadsExceeded&) const {
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
  Answer why_not(const Error& error) {
    // A closed channel is often the first sign of a death.
    if (!ending_ && error.code == ErrorCode::kUnavailable)
      ending_ = impl_.child->await({.deadline = deadline_});
    impl_.child->kill_tree();
    spdlog::debug("{}: {}", impl_.name, ending_ ? sandbox::describe(*ending_) : error.message);
    if (ending_) return std::visit(ToAnswer{}, *ending_);
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
  if (impl_ != nullptr) spdlog::debug("{}: ends", impl_->name);
}

Answer Session::ask(std::string_view question, const Fd* region,
                    std::chrono::duration<double> limit) {
  const auto start = Child::Clock::now();
  send(question, region, limit);
  return receive(limit - (Child::Clock::now() - start));
}

void Session::send(std::string_view question, const Fd* region,
                   std::chrono::duration<double> limit) {
  MC_CHECK(!impl_->owes_answer);
  MC_CHECK(region == nullptr || region->is_open());
  wake();
  MC_CHECK(!impl_->rests);
  impl_->owes_answer = true;
  impl_->asked = Child::Clock::now();
  if (spdlog::should_log(spdlog::level::debug)) impl_->question = summary_of(question);
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
  const Status sent = impl_->channel.send(question, fds, watch.wait());
  if (!sent) impl_->unsent = watch.why_not(sent.error());
}

void Session::charge(AnswerTime* time) { impl_->time = time; }

Answer Session::receive(std::chrono::duration<double> limit) {
  MC_CHECK(impl_->owes_answer);
  const bool is_last = impl_->time != nullptr && impl_->time->left <= limit;
  Answer answer = receive_within(limit);
  if (impl_->time == nullptr) return answer;
  impl_->time->left -= Child::Clock::now() - impl_->asked;
  const auto* overrun = std::get_if<LimitExceeded>(&answer);
  const bool is_late = overrun != nullptr && overrun->limit == Limit::kWall;
  if (is_late && is_last) impl_->time->left = std::min(impl_->time->left, {});
  if (is_late && impl_->time->left.count() <= 0) return LimitExceeded{Limit::kAllCalls};
  return answer;
}

Answer Session::receive_within(std::chrono::duration<double> limit) {
  impl_->owes_answer = false;
  if (impl_->unsent) return std::move(*std::exchange(impl_->unsent, std::nullopt));
  Watch watch(*impl_, bounded(*impl_, limit));
  auto message = impl_->channel.receive(watch.wait());
  if (!message) return watch.why_not(message.error());
  if (!impl_->question.empty()) {
    const std::chrono::duration<double, std::milli> taken = Child::Clock::now() - impl_->asked;
    spdlog::debug("{}: {} took {:.0f} ms", impl_->name, impl_->question, taken.count());
  }
  if (is_ok(message->json)) return Reply{std::move(message->json), std::move(message->region)};
  auto refusal = decode_refusal(message->json);
  if (refusal) return std::move(refusal).value();
  impl_->child->kill_tree();
  return MalformedReply{refusal.error().message};
}

void Session::rest() {
  if (std::exchange(impl_->owes_answer, false)) return end();
  impl_->rests = true;
  impl_->child->stop();
}

void Session::wake() {
  if (std::exchange(impl_->rests, false)) impl_->child->go_on();
}

bool Session::has_news(std::chrono::milliseconds wait) {
  if (impl_->unsent) return true;
  return impl_->child->has_news(impl_->channel.fd(), wait);
}

void Session::end() { impl_->child->kill_tree(); }

Result<std::vector<std::filesystem::path>> Session::show(
    const std::vector<std::filesystem::path>& libraries) {
  MC_CHECK(!std::exchange(impl_->was_shown, true));
  if (!impl_->sees_shelf) return libraries;
  MC_CHECK(impl_->shelf.has_value());
  MC_TRY_VOID(impl_->shelf->put(libraries), "artifacts");
  std::vector<std::filesystem::path> shown;
  for (size_t i = 0; i < libraries.size(); ++i) shown.push_back(path_on_shelf(i, libraries[i]));
  return shown;
}

std::string Session::output_tail() const { return impl_->output.text(); }

int64_t Session::memory_peak_bytes() const { return impl_->child->memory_peak_bytes(); }

}  // namespace mc::worker
