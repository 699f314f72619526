// SPDX-License-Identifier: Apache-2.0
#include "execute/session.h"

#include <poll.h>

#include "execute/session_impl.h"

namespace mc::execute {
namespace {

using sandbox::Child;
using sandbox::Ending;

struct ToAnswer {
  Answer operator()(const sandbox::Exited& exited) const { return Death{0, exited.code}; }
  Answer operator()(const sandbox::Signaled& signaled) const { return Death{signaled.signal, 0}; }
  Answer operator()(const sandbox::TimedOut&) const { return Overrun{Limit::kWall}; }
  Answer operator()(const sandbox::CpuExceeded&) const { return Overrun{Limit::kCpu}; }
  Answer operator()(const sandbox::MemoryExceeded&) const { return Overrun{Limit::kMemory}; }
  Answer operator()(const sandbox::ThreadsExceeded&) const { return Overrun{Limit::kThreads}; }
};

}  // namespace

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Answer Session::ask(std::string_view question, const Fd* region,
                    std::chrono::duration<double> limit) {
  const auto deadline =
      Child::Clock::now() + std::chrono::duration_cast<Child::Clock::duration>(limit);
  std::optional<Ending> ending;
  const Channel::Wait wait = [&](int fd, short events) -> Status {
    const auto ready = events == POLLIN ? Child::Ready::kToRead : Child::Ready::kToWrite;
    ending = impl_->child.await({.fd = fd, .ready = ready, .deadline = deadline});
    if (ending) return Error{ErrorCode::kUnavailable, "the child ended"};
    return ok();
  };
  std::vector<int> fds;
  if (region != nullptr) fds.push_back(region->get());
  const Status sent = impl_->channel.send(question, fds, wait);
  auto message = sent ? impl_->channel.receive(wait) : Result<Message>(sent.error());
  if (!message) {
    // A closed channel is how a death is often seen first.
    if (!ending && message.error().code == ErrorCode::kUnavailable) {
      ending = impl_->child.wait(deadline);
    }
    impl_->child.kill_tree();
    if (ending) return std::visit(ToAnswer{}, *ending);
    return Garbled{message.error().message};
  }
  if (is_ok(message->json)) return Reply{std::move(message->json), std::move(message->region)};
  auto refusal = decode_refusal(message->json);
  if (refusal) return std::move(refusal).value();
  impl_->child.kill_tree();
  return Garbled{refusal.error().message};
}

std::string Session::report() const { return std::string(impl_->report.text()); }

std::string Session::output_tail() const { return impl_->output.text(); }

int64_t Session::memory_peak_bytes() const {
  return static_cast<int64_t>(impl_->child.usage().memory_bytes_peak);
}

}  // namespace mc::execute
