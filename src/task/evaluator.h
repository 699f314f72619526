// SPDX-License-Identifier: Apache-2.0
//
// Evaluator: an interface for judging a candidate: the pipeline of this machine, a remote service,
// or a test's fake.
#ifndef MC_TASK_EVALUATOR_H_
#define MC_TASK_EVALUATOR_H_

#include "task/task.h"
#include "task/verdict.h"

namespace mc::task {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Always returns a verdict; a failure of the environment is `Infra`.  Thread-safe.
  virtual Verdict evaluate(const Task& task, const Candidate& candidate) = 0;
};

}  // namespace mc::task

#endif  // MC_TASK_EVALUATOR_H_
