// SPDX-License-Identifier: Apache-2.0
//
// Values that follow from the options of an RL run: the settings in which a resumed run must equal
// the earlier one, the options of its parts, and the default number of concurrent answers.
#ifndef MC_LOOP_RL_SETTINGS_H_
#define MC_LOOP_RL_SETTINGS_H_

#include <cstdint>
#include <string>

#include "loop/policy.h"
#include "loop/rl.h"
#include "loop/update.h"
#include "model/config.h"

namespace mc::loop {

// The settings as JSON.  Newer options appear only if they are used, so that runs from older
// versions can resume. REQUIRES: options.batch is set.
std::string settings_json(const RlOptions& options);

// The options of the policy; answers are scored at the temperature at which they were drawn.
PolicyOptions policy_options(const RlOptions& options);

// The options of the update of a step, with its learning rate.
UpdateOptions update_options(const RlOptions& options, int64_t step, double lr);

// The default number of concurrent answers.  On the CPU 32.  On a GPU all answers of a wave, at
// most 256, limited so that keys and values for sequences of `length_max` tokens fit 16 GiB; at
// least 32.
int64_t default_batch(const RlOptions& options, const model::Config& config, int64_t length_max);

}  // namespace mc::loop

#endif  // MC_LOOP_RL_SETTINGS_H_
