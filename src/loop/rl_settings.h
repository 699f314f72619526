// SPDX-License-Identifier: Apache-2.0
//
// Settings of a run of RL: what a resumed run must have in common with the run before, and the
// number of answers at a time where none is given.
#ifndef MC_LOOP_RL_SETTINGS_H_
#define MC_LOOP_RL_SETTINGS_H_

#include <cstdint>
#include <string>

#include "loop/rl.h"
#include "model/config.h"

namespace mc::loop {

// JSON.  An option that came later is in it only where it is used, so that older runs go on.
// REQUIRES: options.batch is given.
std::string settings_json(const RlOptions& options);

// Answers at a time: 32 on the CPU.  On a GPU all of a wave, 256 at most, as far as their keys and
// values (sequences of up to `length_max` tokens) take 16 GiB; 32 at least.
int64_t default_batch(const RlOptions& options, const model::Config& config, int64_t length_max);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_SETTINGS_H_
