// SPDX-License-Identifier: Apache-2.0
//
// Evaluator: whatever can judge a candidate: the pipeline of this machine, a remote service, a
// test's fake.
#ifndef MC_TASK_EVALUATOR_H_
#define MC_TASK_EVALUATOR_H_

#include "task/task.h"
#include "task/verdict.h"

namespace mc::task {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Always a verdict; what the world did wrong is `Infra`.  Thread-safe.
  virtual Verdict evaluate(const Task& task, const Candidate& candidate) = 0;
};

}  // namespace mc::task

#endif  // MC_TASK_EVALUATOR_H_
