// SPDX-License-Identifier: Apache-2.0
//
// Session: the supervisor's side of one child of the zygote.
//
// A child serves one role for one candidate.  The supervisor sends requests, and the child responds
// once to each.  In the meantime the supervisor watches the child's end through a pidfd, its memory
// and threads, and the time limit, and drains its output.  Destroying a session kills the child's
// whole pid namespace.  Not thread-safe; one thread drives a session.
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

// The wall-clock time that is left to a candidate for all its responses, of all its processes.
struct TimeBudget {
  std::chrono::duration<double> left;
};

struct Reply {  // "ok": true
  std::string json;
  Fd region;
};
struct ProcessEnd {  // The child ended without a response.
  int signal = 0;
  int exit_code = 0;
};
struct LimitExceeded {
  Limit limit = Limit::kWall;
};
struct MalformedReply {  // The child sent something that is not a message.
  std::string why;
};
using CallResult = std::variant<Reply, ErrorReply, ProcessEnd, LimitExceeded, MalformedReply>;

// The response to a request of protocol.json, with its region.
template <typename Request>
struct Response {
  typename Request::Body body;
  Fd region = {};  // Open where the definition demands a region.
};

// A protocol error for a reply that is not a response to `Request`.
template <typename Request>
Result<Response<Request>> parse_response(Reply reply) {
  using Body = typename Request::Body;
  auto response = Body::from_json(reply.json);
  if (!response) return response.error();
  if (reply.region.is_open() == Body::kHasRegion) {
    return Response<Request>{std::move(response).value(), std::move(reply.region)};
  }
  return Error{ErrorCode::kProtocol, Body::kHasRegion ? "a response came without its region"
                                                      : "a response came with a region"};
}

class Session {
 public:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Sends a request, with a region when `region` is not null, and waits for the response.  After
  // any result but Reply and ErrorReply the child is dead.
  CallResult call(std::string_view request, const Fd* region, std::chrono::duration<double> limit);

  // From now on the time until each response is subtracted from `time`; when none is left, the
  // child ends with Limit::kAllCalls.  REQUIRES: `time` is null or outlives the session.
  void charge(TimeBudget* time);

  // The two halves of `ask`, for a request that the child answers later.  After a failed send,
  // `receive` returns the reason.  REQUIRES: the calls alternate.
  void send(std::string_view request, const Fd* region, std::chrono::duration<double> limit);
  CallResult receive(std::chrono::duration<double> limit);
  // True if a response can be received or the child has ended; waits for at most `wait`.
  bool has_news(std::chrono::milliseconds wait);

  // Suspends the child until resume() or the next request, so that it uses neither processors nor a
  // device.  A child that still owes a response, after a failure between `send` and `receive`, is
  // killed: its late response would be taken for the response to the next request.
  void suspend();
  void resume();

  // Kills the child now, which releases its device memory.
  void end();

  // Makes these libraries readable for a candidate process.  Returns their paths in its view; where
  // the sandbox does not restrict the view, the paths are unchanged.  REQUIRES: called once.
  Result<std::vector<std::filesystem::path>> mount_artifacts(
      const std::vector<std::filesystem::path>& libraries);

  // The last bytes of the child's output.
  std::string output_tail() const;
  int64_t memory_peak_bytes() const;

 private:
  CallResult receive_within(std::chrono::duration<double> limit);

  std::unique_ptr<Impl> impl_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_SESSION_H_
