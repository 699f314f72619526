// SPDX-License-Identifier: Apache-2.0
//
// A verifier without a compiler, for tests: its results depend only on the texts of the tasks and
// kernels, and all kinds of results occur.
#ifndef MC_FORGE_TESTING_FAKE_VERIFIER_H_
#define MC_FORGE_TESTING_FAKE_VERIFIER_H_

#include <vector>

#include "core/result.h"
#include "forge/batch.h"
#include "task/evaluator.h"

namespace mc::forge {

Result<std::vector<TaskResult>> fake_results(const std::vector<TaskWork>& works);

// The auditor of a run without audits.
class NoAuditor : public task::Evaluator {
 public:
  task::Verdict evaluate(const task::Task&, const task::Candidate&) override { return {}; }
};

}  // namespace mc::forge

#endif  // MC_FORGE_TESTING_FAKE_VERIFIER_H_
