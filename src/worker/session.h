// SPDX-License-Identifier: Apache-2.0
//
// Session: the supervisor's side of one child of the zygote.
//
// A child serves one role for one candidate.  The supervisor asks, the child answers once for each
// question; while it waits, the supervisor watches the child's life through a pidfd, its memory and
// threads, the clock, and drains what it prints.  Destroying a session kills the child's whole pid
// namespace.  Not thread-safe; one thread drives a session.
#ifndef MC_WORKER_SESSION_H_
#define MC_WORKER_SESSION_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "worker/envelope.h"

namespace mc::worker {

inline constexpr size_t kOutputTailBytes = 4 << 10;

enum class Limit { kWall, kAllCalls, kCpu, kMemory, kThreads };

// The time by the clock that is left to a candidate for all its answers, of however many processes.
struct AnswerTime {
  std::chrono::duration<double> left;
};

struct Reply {  // "ok": true
  std::string json;
  Fd region;
};
struct ProcessEnd {  // The child ended without an answer.
  int signal = 0;
  int exit_code = 0;
};
struct LimitExceeded {
  Limit limit = Limit::kWall;
};
struct MalformedReply {  // It answered with what is no message.
  std::string why;
};
using Answer = std::variant<Reply, ErrorReply, ProcessEnd, LimitExceeded, MalformedReply>;

// The answer to a question of protocol.json, and what came along.
template <typename Question>
struct Response {
  typename Question::Answer body;
  Fd region = {};  // Open where the definition says that one comes.
};

// A protocol error for what is no answer to `Question`.
template <typename Question>
Result<Response<Question>> parse_response(Reply reply) {
  using Said = typename Question::Answer;
  auto said = Said::from_json(reply.json);
  if (!said) return said.error();
  if (reply.region.is_open() == Said::kHasRegion) {
    return Response<Question>{std::move(said).value(), std::move(reply.region)};
  }
  return Error{ErrorCode::kProtocol, Said::kHasRegion ? "an answer came without its region"
                                                      : "an answer came with a region"};
}

class Session {
 public:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Sends a question, with a region when `region` is not null, and waits for the answer.  After
  // anything but Reply and ErrorReply the child is dead.
  Answer ask(std::string_view question, const Fd* region, std::chrono::duration<double> limit);

  // From now on the time until each answer is taken off `time`, at whose end the child ends by
  // Limit::kAllCalls.  REQUIRES: `time` is null or outlives the session.
  void charge(AnswerTime* time);

  // The two halves of `ask`, for a question that the child answers later.  After a failed send,
  // `receive` tells why.  REQUIRES: they alternate.
  void send(std::string_view question, const Fd* region, std::chrono::duration<double> limit);
  Answer receive(std::chrono::duration<double> limit);
  // True if an answer, or the child's end, waits to be received; waits that long for it.
  bool has_news(std::chrono::milliseconds wait);

  // Stops the child until it is woken or asked again, so that it uses neither processors nor a
  // device meanwhile.  One that owes an answer, after a failure between `send` and `receive`, is
  // ended: what it said later would be taken for the answer to the next question.
  void rest();
  void wake();

  // Ends the child now, and so gives back what it holds of a device.
  void end();

  // Lets a candidate process read these libraries; their paths as it sees them.  Where the sandbox
  // could not close its view, they are what they were.  REQUIRES: called once.
  Result<std::vector<std::filesystem::path>> show(
      const std::vector<std::filesystem::path>& libraries);

  // The last bytes of what the child printed.
  std::string output_tail() const;
  int64_t memory_peak_bytes() const;

 private:
  Answer receive_within(std::chrono::duration<double> limit);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_SESSION_H_
