// SPDX-License-Identifier: Apache-2.0
//
// From what the bulk verifier saw of one solution to the outcome that MooreEval gives for it: both
// leave the rules to execute::Trials.
#ifndef MC_FORGE_CONCLUDE_H_
#define MC_FORGE_CONCLUDE_H_

#include <string_view>

#include "core/result.h"
#include "execute/decode.h"
#include "execute/executor.h"
#include "task/verdict.h"

namespace mc::forge {

// `task_answer` and `run` are JSON of harness/forge/verify.py; kProtocol where they are not of that
// form.  The outcome is MooreEval's, with one exception: a model that cannot be built at another
// shape decides, also where the task asks for its own sizes alone.
Result<task::Outcome> conclude(std::string_view task_answer, std::string_view run,
                               const execute::RunPolicy& policy, const execute::Locate& locate);

}  // namespace mc::forge

#endif  // MC_FORGE_CONCLUDE_H_
