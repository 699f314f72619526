// SPDX-License-Identifier: Apache-2.0
//
// The members of a Session; made by Zygote::spawn.  Members are destroyed in reverse order: the
// child dies before the session waits for the end of its output.
#ifndef MC_WORKER_SESSION_IMPL_H_
#define MC_WORKER_SESSION_IMPL_H_

#include <memory>
#include <optional>
#include <string>

#include "core/fd.h"
#include "worker/artifact_mount.h"
#include "worker/channel.h"
#include "worker/child_handle.h"
#include "worker/output_tail.h"
#include "worker/session.h"

namespace mc::worker {

struct Session::Impl {
  OutputTail output;
  Channel channel;
  std::unique_ptr<ChildHandle> child;
  std::optional<ArtifactMount> artifacts = std::nullopt;  // The mount of a candidate process.
  bool sees_mount = false;
  std::optional<CallResult> unsent = std::nullopt;  // The reason why the last request was not sent.
  bool is_suspended = false;
  bool owes_response = false;  // True from a request until its response is received.
  bool has_mounted = false;    // True once show() was called.
  TimeBudget* time = nullptr;  // The limit of all answers together, if any.
  sandbox::Child::Clock::time_point asked = {};  // The time of the last request.
  // For the log:
  std::string name = {};     // "judge 1234"
  std::string request = {};  // The last request, if debug messages are logged.
};

}  // namespace mc::worker

#endif  // MC_WORKER_SESSION_IMPL_H_
