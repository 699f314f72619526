// SPDX-License-Identifier: Apache-2.0
//
// Preparer: the stages that need neither a device nor a judge nor a secret.
// The stages:
//   extraction → for a MUSA candidate, its port to CUDA (musa_dialect.h) → inspection by CPython's
//   ast → recording of what the module passes to load_inline, at every size at which the task may
//   be judged → for a MUSA candidate, the port of what was recorded → rules on flags and native
//   sources → compilation → rules on the symbols
#ifndef MC_EVAL_PREPARER_H_
#define MC_EVAL_PREPARER_H_

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "eval/options.h"
#include "eval/prepared.h"
#include "execute/executor.h"
#include "legality/policy.h"

namespace mc::eval {

struct Machine;
class MusaDialect;

class Preparer {
 public:
  // REQUIRES: all arguments outlive the preparer.
  Preparer(const Options& options, const legality::Policy& policy, const MusaDialect& musa,
           const Machine& machine, execute::Executor& executor)
      : options_(options), policy_(policy), musa_(musa), machine_(machine), executor_(executor) {}

  // Thread-safe.  `Infra` where something other than the candidate fails.  Without a dialect, the
  // options' dialect applies.
  Preparation prepare(const task::Task& task, const task::Candidate& candidate,
                      const task::Correctness& correctness,
                      std::optional<task::Dialect> dialect = std::nullopt);

  // The services that one candidate's stages call.
  using Initials = std::shared_ptr<const execute::Initials>;
  execute::Stage<Initials> initials_of(const task::Task& task,
                                       const task::Correctness& correctness);
  const Options& options() const { return options_; }
  const legality::Policy& policy() const { return policy_; }
  const MusaDialect& musa() const { return musa_; }
  const Machine& machine() const { return machine_; }
  execute::Executor& executor() const { return executor_; }

 private:
  const Options& options_;
  const legality::Policy& policy_;
  const MusaDialect& musa_;
  const Machine& machine_;
  execute::Executor& executor_;

  std::mutex mutex_;
  std::list<std::pair<std::string, Initials>> initials_;  // The keys are hashes; guarded by mutex_.
};

}  // namespace mc::eval

#endif  // MC_EVAL_PREPARER_H_
