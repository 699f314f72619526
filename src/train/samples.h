// SPDX-License-Identifier: Apache-2.0
//
// Conversations to learn from, as JSON Lines: {"messages": [{"role", "content"}, ...], ...}, of
// which the last message is the assistant's.  Other fields are left alone.
#ifndef MC_TRAIN_SAMPLES_H_
#define MC_TRAIN_SAMPLES_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/result.h"
#include "model/model_folder.h"

namespace mc::train {

// The tokens of one conversation.  Those from `answer` on are the last assistant turn and what ends
// it: what is learned.  What comes before is only read.
struct Sample {
  std::vector<int32_t> tokens;
  int64_t answer = 0;  // From 1 to below tokens.size().
};

struct Samples {
  std::vector<Sample> kept;
  int64_t too_long = 0;  // Conversations left out, of more than length_max tokens.
};

// kInvalidInput names the line: no JSON, no messages, no assistant turn at the end, messages that
// the model's chat template refuses, an answer without an end token, nothing kept.
Result<Samples> read_samples(const std::filesystem::path& path, const model::Model& model,
                             int64_t length_max);

}  // namespace mc::train

#endif  // MC_TRAIN_SAMPLES_H_
