// SPDX-License-Identifier: Apache-2.0
//
// The metrics of a step of RL, by the names of docs/rl.md.
#ifndef MC_LOOP_RL_METRICS_H_
#define MC_LOOP_RL_METRICS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "loop/episode.h"
#include "loop/prompt_queue.h"
#include "loop/update.h"
#include "train/events.h"

namespace mc::loop {

using Scalars = std::vector<train::Scalar>;

// Metrics of the groups that a step drew first.
void add_episodes(std::span<const Episode> episodes, const UpdateOptions& options,
                  Scalars& scalars);

// Metrics of the update; `num_no_spread`: the groups that were left out of it for want of spread.
void add_update(const UpdateResult& update, size_t num_no_spread, Scalars& scalars);

void add_retries(const RetryCounts& counts, Scalars& scalars);

// Metrics of answers to held-out prompts.
void add_eval(std::span<const Episode> episodes, Scalars& scalars);

// 0 where there is no scalar of this name.
double value_of(const Scalars& scalars, std::string_view name);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_METRICS_H_
