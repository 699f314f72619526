// SPDX-License-Identifier: Apache-2.0
#include "worker/fakes/fake_worker.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "worker/session_impl.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

// The size of the header in the channel's protocol.
constexpr size_t kHeaderBytes = 4;
// The number of polls without a response after which a request counts as hanging.
constexpr int kLooksMax = 1000;
constexpr std::chrono::milliseconds kLook{50};

std::string json_of(const ErrorReply& refusal) {
  const Json error{{"kind", refusal.kind},
                   {"stage", refusal.stage},
                   {"type", refusal.exception.type},
                   {"message", refusal.exception.message}};
  return Json{{"ok", false}, {"error", error}}.dump();
}

bool is_ready(int fd, short events) {
  pollfd poller{fd, events, 0};
  return ::poll(&poller, 1, 0) > 0 && (poller.revents & events) != 0;
}

bool has_bytes(int fd) {
  int num = 0;
  return ::ioctl(fd, FIONREAD, &num) == 0 && num > 0;
}

}  // namespace

Clock FakeTime::clock() const {
  return {[now = now_] { return *now; },
          [time = *this](Clock::Seconds seconds) { time.pass(seconds); }};
}

void FakeTime::pass(Clock::Seconds time) const {
  *now_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(time);
}

struct FakeWorker::State {
  FakeTime time;
  std::map<std::string, Operation> script{};
  std::vector<std::string> asked{};
  int num_sessions = 0;
  int num_alive = 0;
  bool is_suspended = false;
};

class FakeWorker::Handle final : public ChildHandle {
 public:
  Handle(std::shared_ptr<State> state, Fd socket)
      : state_(std::move(state)), socket_(std::move(socket)) {
    ++state_->num_sessions;
    ++state_->num_alive;
    ::fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  }
  ~Handle() override { kill_tree(); }

  std::optional<Ending> await(const Awaited& awaited) override {
    MC_CHECK(!is_suspended_);
    const short events = awaited.ready == sandbox::Child::Ready::kToRead ? POLLIN : POLLOUT;
    for (int looks = 0; looks < kLooksMax && !hangs_; ++looks) {
      if (events == POLLIN && awaited.fd >= 0 && has_bytes(awaited.fd)) return std::nullopt;
      if (ending_) return ending_;
      if (events == POLLOUT && is_ready(awaited.fd, POLLOUT)) return std::nullopt;
      go_further();
    }
    end(sandbox::TimedOut{});
    return ending_;
  }

  bool has_news(int channel, std::chrono::milliseconds wait) override {
    go_further();
    if (has_bytes(channel) || ending_) return true;
    state_->time.pass(std::max(wait, kLook));
    go_further();
    return has_bytes(channel) || ending_;
  }

  void stop() override { state_->is_suspended = is_suspended_ = true; }
  void go_on() override { state_->is_suspended = is_suspended_ = false; }
  void kill_tree() override { end(sandbox::Signaled{SIGKILL}); }
  int64_t memory_peak_bytes() const override { return 0; }

 private:
  void end(Ending ending) {
    if (ending_) return;
    ending_ = ending;
    socket_.reset();
    --state_->num_alive;
  }

  // Reads the available bytes, reacts to a complete request, and writes as much as fits.
  void go_further() {
    if (ending_ || is_suspended_) return;
    if (!request_) receive();
    if (request_) react();
    while (!ending_ && !unsent_.empty() && send()) continue;
  }

  void receive() {
    while (is_ready(socket_.get(), POLLIN)) {
      std::array<char, 4096> block{};
      std::array<char, CMSG_SPACE(sizeof(int))> control{};
      iovec part{block.data(), block.size()};
      msghdr message{};
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
      if (got <= 0) return;
      received_.append(block.data(), static_cast<size_t>(got));
      if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        region_ = Fd(fd);
      }
    }
    if (received_.size() < kHeaderBytes) return;
    uint32_t length = 0;
    std::memcpy(&length, received_.data(), sizeof length);
    if (received_.size() < kHeaderBytes + length) return;
    MC_CHECK(received_.size() == kHeaderBytes + length);  // At most one request at a time.
    request_ = received_.substr(kHeaderBytes);
    received_.clear();
    operation_ = Json::parse(*request_).at("op");
    state_->asked.push_back(operation_);
  }

  void react() {
    const auto found = state_->script.find(operation_);
    MC_CHECK(found != state_->script.end());
    const Reaction reaction = found->second.react(*request_, region_);
    if (std::holds_alternative<Later>(reaction)) return;
    request_.reset();
    region_.reset();
    hangs_ = std::holds_alternative<Hangs>(reaction);
    if (const auto* death = std::get_if<ProcessEnd>(&reaction)) {
      end(death->signal != 0 ? Ending(sandbox::Signaled{death->signal})
                             : Ending(sandbox::Exited{death->exit_code}));
    }
    if (const auto* refusal = std::get_if<ErrorReply>(&reaction)) say(json_of(*refusal), false);
    if (const auto* json = std::get_if<std::string>(&reaction)) {
      say(*json, found->second.has_region);
    }
  }

  void say(const std::string& json, bool has_region) {
    const auto length = static_cast<uint32_t>(json.size());
    unsent_.assign(kHeaderBytes, '\0');
    std::memcpy(unsent_.data(), &length, sizeof length);
    unsent_ += json;
    if (has_region) shown_ = Fd(::memfd_create("fake-region", MFD_CLOEXEC));
  }

  bool send() {
    std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{unsent_.data(), unsent_.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (shown_.is_open()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = shown_.get();
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    shown_.reset();
    unsent_.erase(0, static_cast<size_t>(sent));
    return true;
  }

  std::shared_ptr<State> state_;
  Fd socket_;
  std::string received_;                // The received part of an incomplete request.
  Fd region_;                           // The region of that request.
  std::optional<std::string> request_;  // The request without a response so far.
  std::string operation_;               // The operation of that request.
  std::string unsent_;                  // The unsent rest of a response.
  Fd shown_;                            // The descriptor of that response.
  bool is_suspended_ = false;
  bool hangs_ = false;
  std::optional<Ending> ending_;
};

FakeWorker::FakeWorker(FakeTime time) : state_(std::make_shared<State>(State{std::move(time)})) {}

void FakeWorker::set(const std::string& name, Operation operation) {
  state_->script[name] = std::move(operation);
}

Session FakeWorker::session() const {
  auto output = OutputTail::create(kOutputTailBytes).value();
  auto ends = Channel::create_pair().value();
  auto handle = std::make_unique<Handle>(state_, std::move(ends.second));
  return Session(std::unique_ptr<Session::Impl>(
      new Session::Impl{std::move(output.first), std::move(ends.first), std::move(handle)}));
}

const std::vector<std::string>& FakeWorker::asked() const { return state_->asked; }
int FakeWorker::num_sessions() const { return state_->num_sessions; }
int FakeWorker::num_alive() const { return state_->num_alive; }
bool FakeWorker::is_suspended() const { return state_->is_suspended; }

}  // namespace mc::worker
