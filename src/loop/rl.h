// SPDX-License-Identifier: Apache-2.0
//
// Reinforcement learning from verdicts: a model folder and tasks in, a run folder out.
//
//   RUN/store.sqlite     the settings of the run, and every episode
//   RUN/episodes.jsonl   the episodes as text (episode.h)
//   RUN/metrics.jsonl    one line for each step (docs/rl.md)
//   RUN/checkpoints/     the states from which an interrupted run resumes
//   RUN/model            the result, once the run is complete
//
// A step: prompts of the data or replays of failed answers (BDR) → answers and verdicts → PrimeEcho
// → advantage → MirrorPop → clipped objective and KL → AdamW.  The rules are in src/rl. A killed
// run resumes from its last checkpoint.  If the verifier gives the same verdict for the same
// answer, the metrics and the result are those of an uninterrupted run, bit for bit on the CPU.
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

// An evaluation: the policy's greedy answers to held-out prompts, judged by the run's verifier.
struct EvalOptions {
  std::filesystem::path data;  // Tasks with prompts, see read_prompts.
  // The steps between evaluations; the policy is also evaluated before the first and after the last
  // step.
  int64_t steps = 10;
  int64_t tasks = 100;  // The maximum number of tasks; the seed chooses them.
};

struct RlOptions {
  std::filesystem::path model;
  std::filesystem::path data;  // The file for read_prompts (episode.h).
  std::filesystem::path run;
  std::vector<std::string> judge;  // The command of the verifier.
  // A run whose recorded episodes are used instead of new ones.
  std::optional<std::filesystem::path> replay;
  int64_t steps = 100;
  int64_t prompts = 16;  // The number of prompts in a step.
  int64_t samples = 8;   // The number of answers to each prompt.
  int64_t turns = 1;
  int64_t updates = 1;  // The number of passes over the episodes of a step.
  int64_t mini_batches = 1;
  // The run ends after a step whose KL to the first weights exceeds this value; it requires beta >
  // 0.
  std::optional<double> kl_end;
  // The margin of the penalty for long answers; see rl::OverlongOptions.
  int64_t overlong_tokens = 0;
  std::optional<EvalOptions> eval;
  std::optional<double> kl_stop;  // See UpdateOptions, also for mini_batches.
  // Dynamic sampling: groups without spread are left out of the update, and new prompts replace
  // them, in at most this many rounds.
  std::optional<int64_t> refills_max;
  // The generator's weights are updated every stale + 1 steps, so they are 0 to `stale` steps old.
  int64_t stale = 0;
  // The number of answers generated concurrently; the default is default_batch().
  std::optional<int64_t> batch;
  model::GenerateOptions generate;
  PolicyOptions policy;  // The member `temperature` is ignored: that of `generate` is used.
  rl::StepOptions step;
  rl::TrainingScoreOptions score;
  rl::PrimeEchoOptions prime_echo;  // With a single turn, R = s.
  rl::RetryOptions retry;
  bool replays_show_failure = true;  // False: a replay contains only the task.
  // True: shuffles the rewards within each group; see UpdateOptions.
  bool shuffles_rewards = false;
  uint64_t seed = 0;
  bool resume = false;
  std::optional<int64_t> checkpoint_steps;  // The default is one checkpoint a minute.
};

struct RlProgress {
  int64_t step = 0;  // The number of completed steps.
  double reward = 0;
  double accuracy = 0;  // The accuracy of first turns.
  double elapsed_s = 0;
};

struct RlResult {
  int64_t episodes = 0;  // The episodes of all parts of the run.
  std::string ended;     // The reason why the run ended before its last step; empty if it did not.
  RlProgress last;       // The rates are 0 if no step was left to do.
};

// kInvalidInput for errors that the user can correct.  PyTorch's exceptions are passed on.
Result<RlResult> run_rl(const RlOptions& options,
                        const std::function<void(const RlProgress&)>& on_step);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_H_
