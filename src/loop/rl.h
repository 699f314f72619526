// SPDX-License-Identifier: Apache-2.0
//
// Reinforcement learning from verdicts: a model folder and tasks in, a run folder out.
//
//   RUN/store.sqlite     what the run was asked for, and every episode
//   RUN/episodes.jsonl   the episodes as text (episode.h)
//   RUN/metrics.jsonl    one line a step (docs/rl.md)
//   RUN/checkpoints/     to go on from after a stop of any kind
//   RUN/model            the result, once the run is complete
//
// A step: prompts of the data, or replays of failed answers (BDR) → answers, judged meanwhile →
// PrimeEcho → advantage → MirrorPop → clipped objective and KL → AdamW.  The rules are src/rl's.
// A run that was killed goes on from its last checkpoint; with a verifier that says the same of the
// same answer its metrics and its result are those of a run that was not, bit for bit on the CPU.
#ifndef MC_LOOP_RL_H_
#define MC_LOOP_RL_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "loop/policy.h"
#include "loop/rollout.h"
#include "rl/bdr.h"
#include "rl/prime_echo.h"
#include "rl/score.h"
#include "rl/step.h"

namespace mc::loop {

// Answers of the policy to held-out prompts: the likeliest one to each, judged by the run's
// verifier.
struct EvalOptions {
  std::filesystem::path data;  // Tasks with prompts, see read_prompts.
  int64_t steps = 10;          // Steps between; before the first and behind the last step too.
  int64_t tasks = 100;         // At most; the seed chooses them.
};

struct RlOptions {
  std::filesystem::path model;
  std::filesystem::path data;  // The file of read_prompts (episode.h)
  std::filesystem::path run;
  std::vector<std::string> judge;               // Command of the verifier.
  std::optional<std::filesystem::path> replay;  // A run whose episodes are taken for our own.
  int64_t steps = 100;
  int64_t prompts = 16;  // A step.
  int64_t samples = 8;   // A prompt.
  int64_t turns = 1;
  int64_t updates = 1;  // Passes over the episodes of a step.
  int64_t mini_batches = 1;
  // The run ends behind the step whose KL to the first weights is beyond this; beta is not 0 then.
  std::optional<double> kl_end;
  int64_t overlong_tokens = 0;  // The margin of the penalty for long answers, OverlongOptions.
  std::optional<EvalOptions> eval;
  std::optional<double> kl_stop;  // See UpdateOptions, also for the one before.
  // Dynamic sampling: groups without spread are left out of the update, and other prompts answered
  // in their place, in so many rounds at most.
  std::optional<int64_t> refills_max;
  // The generator gets the trainer's weights every stale + 1 steps, so that they are 0 to `stale`
  // steps old.
  int64_t stale = 0;
  std::optional<int64_t> batch;  // Answers at a time, for `generate`; see default_batch.
  model::GenerateOptions generate;
  PolicyOptions policy;  // Its temperature is that of generate.
  rl::StepOptions step;
  rl::TrainingScoreOptions score;
  rl::PrimeEchoOptions prime_echo;  // With one turn: R = s.
  rl::RetryOptions retry;
  bool replays_show_failure = true;  // False: the task alone.
  bool shuffles_rewards = false;     // Within each group; see UpdateOptions.
  uint64_t seed = 0;
  bool resume = false;
  std::optional<int64_t> checkpoint_steps;  // The default is once a minute.
};

struct RlProgress {
  int64_t step = 0;  // Done.
  double reward = 0;
  double accuracy = 0;  // The accuracy of first turns.
  double elapsed_s = 0;
};

struct RlResult {
  int64_t episodes = 0;  // The episodes of all parts of the run.
  std::string ended;     // Why the run ended before its last step; empty where it did not.
  RlProgress last;       // Rates are 0 where no step was left to do.
};

// kInvalidInput for what the user can mend.  PyTorch's exceptions pass.
Result<RlResult> run_rl(const RlOptions& options,
                        const std::function<void(const RlProgress&)>& on_step);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_H_
