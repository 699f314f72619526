// SPDX-License-Identifier: Apache-2.0
//
// The line protocol: requests on one stream, replies on another, in the order of completion
// (docs/serve.md).
//
//   {"id": "a", "reward": 1.0, "seconds": 0.4, "feedback": "…", "verdict": {…}}
//   {"id": "b", "seconds": 0.4, "prepared": "<base64>"}
//   {"id": "c", "error": "the task's code is too large"}
//   {"id": "a", "error": "cancelled", "kind": "cancelled"}
//   {"id": "d", "about": "backend cuda (90), PyTorch 2.11.0+cu130, policy musacoder 12"}
//
// A null reward means no score (infra, unsupported, or passed on a trivial task).  "kind" is
// "cancelled", "late" or "infra" (this machine failed) where the request has no fault.  A cancel
// request has no reply of its own; it cancels all open requests with its id.
#ifndef MC_SERVICE_STREAM_H_
#define MC_SERVICE_STREAM_H_

#include <cstddef>
#include <iosfwd>
#include <string>

#include "reward/score.h"
#include "service/verifier.h"
#include "task/correctness.h"
#include "task/suite.h"

namespace mc::service {

struct StreamOptions {
  int jobs = 1;
  task::Roots roots;
  task::Correctness correctness;
  reward::ScoreOptions score;
  std::string about;  // The reply to a request with the verb "about".
  size_t feedback_tokens = 2000;
  // While this many requests are without a reply, no further line is read.
  size_t open_max = 200'000;
};

// Serves requests until the end of `in`.  Returns after the last reply.
void serve_stream(std::istream& in, std::ostream& out, Verifier& verifier,
                  const StreamOptions& options);

}  // namespace mc::service

#endif  // MC_SERVICE_STREAM_H_
