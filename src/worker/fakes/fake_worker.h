// SPDX-License-Identifier: Apache-2.0
//
// FakeWorker: for tests, the other end of a Session as an object in the same process.  It reads
// requests from a real channel, checks each against the definition (protocol.json), and responds
// according to a script.  It needs no thread, no sleep and no real clock: it makes progress when
// its session polls it, and a hang ends immediately.
//
//   FakeWorker judge;
//   judge.on<JudgeTrialRequest>([](const auto& asked, const Fd&) {
//     return JudgeTrialResponse{.digest = std::to_string(asked.index)};
//   });
//   Session session = judge.session();
#ifndef MC_WORKER_FAKES_FAKE_WORKER_H_
#define MC_WORKER_FAKES_FAKE_WORKER_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/clock.h"
#include "core/fd.h"
#include "worker/protocol.h"
#include "worker/session.h"

namespace mc::worker {

// Time that advances only in waits and by pass().  All copies of `clock()` share it.
class FakeTime {
 public:
  Clock clock() const;
  void pass(Clock::Seconds time) const;

 private:
  // The owners are this object and each clock that it made.
  std::shared_ptr<Clock::TimePoint> now_ = std::make_shared<Clock::TimePoint>();
};

struct Later {};  // The response is not ready: the request is repeated at the next poll.
struct Hangs {};
// The reaction to a request: the response's JSON, or the reason why there is none.
using Reaction = std::variant<std::string, ErrorReply, Later, Hangs, ProcessEnd>;

class FakeWorker {
 public:
  explicit FakeWorker(FakeTime time = {});

  // From now on the worker reacts to `Request` with `react(request, region)`: a response to it,
  // or a Reaction.
  template <typename Request, typename React>
  void on(React react) {
    set(name_of<Request>(),
        {Request::Body::kHasRegion, [react](const std::string& json, const Fd& region) -> Reaction {
           const auto asked = Request::from_json(json);
           MC_CHECK(asked.has_value());
           MC_CHECK(region.is_open() == Request::kHasRegion);
           return reaction_of(react(*asked, region));
         }});
  }
  // The same for a constant response.
  template <typename Request>
  void say(typename Request::Body response) {
    on<Request>([response](const Request&, const Fd&) { return response; });
  }
  template <typename Request>
  void fail(Reaction reaction) {
    on<Request>([reaction](const Request&, const Fd&) { return reaction; });
  }
  // Responds with a message that the definition does not allow.
  template <typename Request>
  void say_raw(const std::string& json, bool has_region = Request::Body::kHasRegion) {
    set(name_of<Request>(), {has_region, [json](auto&, auto&) -> Reaction { return json; }});
  }

  // A new child that follows this script; each child has its own state.
  Session session() const;

  // The operations that its children were asked for, in order.
  const std::vector<std::string>& asked() const;
  // The number of children so far, and of those that are alive.
  int num_sessions() const;
  int num_alive() const;
  // True if the newest child is stopped.
  bool is_suspended() const;

 private:
  struct Operation {
    bool has_region = false;
    std::function<Reaction(const std::string& json, const Fd& region)> react;
  };
  struct State;
  class Handle;

  template <typename Request>
  static std::string name_of() {
    return unquoted(Request::kFrame.json);
  }
  static std::string unquoted(std::string_view quoted) {
    return std::string(quoted.substr(1, quoted.size() - 2));
  }
  template <typename Body>
  static Reaction reaction_of(const Body& response) {
    if constexpr (std::is_convertible_v<Body, Reaction>) {
      return response;
    } else {
      return response.to_json();
    }
  }
  void set(const std::string& name, Operation operation);

  // The owners are this object and each session's handle.
  std::shared_ptr<State> state_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_FAKES_FAKE_WORKER_H_
