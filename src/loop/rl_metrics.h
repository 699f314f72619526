// SPDX-License-Identifier: Apache-2.0
//
// The metrics of an RL step, one line of metrics.jsonl for each step:
//
// - `reward`, `s_first`: the mean of R, and the mean score of first turns.
// - `reward_std`: the mean over groups of the spread of their rewards.
// - `accuracy_first`, `accuracy_best`: among episodes whose first turn has a score, the share whose
//   first turn passed, and the share of which any turn passed.
// - `turns_to_success`: the mean number of turns of episodes that passed.
// - `entropy`, `kl`, `clip_share`, `loss`, `grad_norm`, `lr`: figures of the last update; the norm
//   is that before clipping.
// - `updates`, `kl_old`: the number of optimizer steps, and the mean k3 to the policy at the
//   beginning of the step, measured before the last optimizer step.
// - `drift`, `drift_signed`: the mean over sequences of mean |log rho|, and that of mean log rho.
// - `drift_kept`, `rejected`: `drift` of the sequences that MirrorPop kept, and the number of
//   sequences that it rejected.
// - `groups_refilled`, `stale`, `overlong`: the number of groups of refill rounds, the age of the
//   generator's weights in steps, and the mean penalty of first answers.
// - `eval/accuracy`, `eval/scored`, `eval/cut_share`, `eval_s`: for answers to --eval-data, the
//   share of passes among answers with a score, the number of these, the share of answers cut off
//   at the token limit, and the seconds that the evaluation took.
// - `unscored`, `groups_no_spread`, `groups_dropped`, `all_failed_share`,
//   `frac_positive_adv_on_failed_first_turn`: the edge cases of docs/rl.md.
// - `bdr/size`, `bdr/age`: the retry buffer after the step.
// - `bdr/replays`, `bdr/solved`, `bdr/solve_rate`: the replays of the step.
// - `outcome/...`, `answer_tokens`, `cut_share`: for first turns, the share of each outcome, the
//   mean number of tokens, and the share of answers cut off at --max-tokens.
// - `unsupported_gains`: the share of first turns that are unsupported although no answer to the
//   same prompt passes.  Such an answer gets the lowest reward of its group.
// - `generate_s`, `verdict_wait_s`, `update_s`, `elapsed_s`, `tokens`, `epoch`: times and progress;
//   waiting for verdicts is counted from the end of generation.
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
