// SPDX-License-Identifier: Apache-2.0
//
// Evaluation: one candidate's way through the stages.
#ifndef MC_EVAL_EVALUATION_H_
#define MC_EVAL_EVALUATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.h"
#include "core/result.h"
#include "eval/device_memory.h"
#include "eval/device_share.h"
#include "eval/pipeline.h"
#include "execute/executor.h"
#include "task/verdict.h"

namespace mc::compile {
struct Artifact;
struct Extension;
class Locator;
class PlaceMapper;
}  // namespace mc::compile
namespace mc::timing {
class Nvml;
}  // namespace mc::timing
namespace mc::legality {
struct NativeSource;
struct Policy;
}  // namespace mc::legality

namespace mc::eval {

class BaselineStore;
class JudgePool;
struct Machine;

// What evaluations share; outlives them.
struct Parts {
  const Options& options;
  const SeedKey& key;
  const legality::Policy& policy;
  const execute::RunPolicy& run_policy;  // Of the same.
  execute::Executor& executor;
  const Machine& machine;
  JudgePool& judges;
  const timing::Nvml* nvml;  // Null without a device.
  DeviceShare& device;
  DeviceMemory& memory;
  const BaselineStore& baselines;
  bool is_alone = false;  // Nothing else uses the device or its memory meanwhile.
  // What fails again that only the candidate could have made fail is the candidate's.
  bool is_second = false;
};

class Evaluation {
 public:
  Evaluation(const Parts& parts, const task::Task& task, const task::Candidate& candidate);
  ~Evaluation();
  // `Infra` where something fails that is not the candidate's, also where something throws.
  task::Verdict run();

  // Whether memory was what decided; other evaluations may have held it.
  bool is_short_of_memory() const { return is_short_of_memory_; }

 private:
  // A stage that passed holds nothing; otherwise the candidate's fate is decided.
  using Decided = std::optional<task::Outcome>;
  using Stage = Result<Decided>;

  Stage judge_all();
  Stage judge_without_throwing();
  Stage extract();
  Stage inspect();
  Stage open_judge();
  Stage take_judge_again();
  Stage open_new_judge(int64_t bytes);
  void hold_memory(int64_t bytes);
  Stage record();
  Stage check_flags();
  std::vector<legality::NativeSource> native_sources() const;
  void place_in_candidate(std::vector<task::RuleFinding>& findings) const;
  Stage check_sources();
  Stage compile();
  Stage check_symbols();
  void note_fixed_sizes(const task::Outcome& outcome);
  Stage measure();
  Status excuse(const execute::Program& program, task::Outcome& outcome);
  bool is_timed() const;
  Stage strict();
  Stage time();
  execute::Program program() const;
  execute::Program located_program();

  const Parts& parts_;
  const task::Task& task_;
  const task::Candidate& candidate_;
  DeviceShare::Use use_;
  std::optional<DeviceMemory::Hold> memory_;

  task::Verdict verdict_;
  bool is_short_of_memory_ = false;
  std::string source_;
  std::string judge_key_;
  std::unique_ptr<execute::Judge> judge_;
  std::vector<compile::Extension> extensions_;
  std::unique_ptr<compile::PlaceMapper> mapper_;
  std::vector<compile::Artifact> artifacts_;
  std::unique_ptr<compile::Locator> locator_;  // Of the CPU backend.
  std::optional<task::Outcome> passed_;        // What correctness says, until all else is over.
  std::unique_ptr<execute::Session> contestant_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_EVALUATION_H_
