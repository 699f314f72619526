// SPDX-License-Identifier: Apache-2.0
//
// The metrics of an RL step, one line of metrics.jsonl for each step:
//
// - `reward`, `reward_std`, `s_first`: mean R, mean spread of a group of the update, mean score of
//   first turns.
// - `accuracy_first`, `accuracy_best`, `turns_to_success`: share of episodes whose first turn, or
//   some turn, passed; mean turns of the latter.
// - `entropy`, `kl`, `clip_share`, `loss`, `grad_norm`, `lr`: of the last update's tokens; the norm
//   before it was limited.
// - `updates`, `kl_old`: steps of the optimiser; mean k3 to the policy at the beginning of the
//   step, before the last of them.
// - `drift`, `drift_signed`, `drift_kept`, `rejected`: mean over sequences of mean |log rho| and of
//   mean log rho; the first again of those that MirrorPop kept; how many it rejected.
// - `groups_refilled`, `stale`, `overlong`: groups that were drawn later, age of the generator's
//   weights in steps, mean penalty of first answers.
// - `eval/accuracy`, `eval/scored`, `eval/cut_share`, `eval_s`: of answers to --eval-data, the
//   share that passed of those with a score, how many have one, the share that was cut, seconds.
// - `unscored`, `groups_no_spread`, `groups_dropped`, `all_failed_share`,
//   `frac_positive_adv_on_failed_first_turn`: the edge cases of docs/rl.md.
// - `bdr/size`, `bdr/age`, `bdr/replays`, `bdr/solved`, `bdr/solve_rate`: the retry buffer after
//   the step; this step's replays.
// - `outcome/...`, `answer_tokens`, `cut_share`: of first turns, the share of each outcome, mean
//   tokens, the share cut at --max-tokens.
// - `unsupported_gains`: of first turns, the share that is unsupported though no answer to the same
//   prompt passes.  Such an answer gets the least reward of its group.
// - `generate_s`, `verdict_wait_s`, `update_s`, `elapsed_s`, `tokens`, `epoch`: where the time
//   goes; waiting counts from the end of generating.
#ifndef MC_LOOP_RL_METRICS_H_
#define MC_LOOP_RL_METRICS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "loop/episode.h"
#include "loop/prompt_queue.h"
#include "loop/update.h"
#include "train/metrics.h"

namespace mc::loop {

using Scalars = std::vector<train::Scalar>;

// Adds the metrics of the first round of groups of a step.
void add_episodes(std::span<const Episode> episodes, const UpdateOptions& options,
                  Scalars& scalars);

// Adds the metrics of the update.  `num_no_spread`: the groups left out because their rewards are
// equal.
void add_update(const UpdateResult& update, size_t num_no_spread, Scalars& scalars);

void add_retries(const RetryCounts& counts, Scalars& scalars);

// Adds the metrics of answers to held-out prompts.
void add_eval(std::span<const Episode> episodes, Scalars& scalars);

// The value of a metric by its name; 0 if it is missing.
double value_of(const Scalars& scalars, std::string_view name);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_METRICS_H_
