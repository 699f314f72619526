// SPDX-License-Identifier: Apache-2.0
//
// Failure: the candidate's outcome after a response that is not a Reply, given the stage.
#ifndef MC_EXECUTE_FAILURE_H_
#define MC_EXECUTE_FAILURE_H_

#include <optional>
#include <string>
#include <vector>

#include "execute/children.h"
#include "execute/executor.h"
#include "task/outcome.h"

namespace mc::execute {

// Unsupported, if the findings contain features that a kernel used and that cannot be emulated.
std::optional<task::Outcome> unsupported_in(const std::vector<task::KernelFinding>& findings);

// A visitor of CallResult.  REQUIRES: the result is not a Reply.
struct Failure {
  const StageLimits& limits;
  const char* stage;
  double limit_s;
  std::vector<task::KernelFinding> findings;

  task::Outcome operator()(const Reply& reply) const;
  task::Outcome operator()(const ErrorReply& refusal) const;
  task::Outcome operator()(const ProcessEnd& death) const;
  task::Outcome operator()(const LimitExceeded& overrun) const;
  task::Outcome operator()(const MalformedReply& garbled) const;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_FAILURE_H_
