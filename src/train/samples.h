// SPDX-License-Identifier: Apache-2.0
//
// Conversations to learn from, as JSON Lines: {"messages": [{"role", "content"}, ...], ...}.  The
// last message is the assistant's.  Other fields are ignored.
#ifndef MC_TRAIN_SAMPLES_H_
#define MC_TRAIN_SAMPLES_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/result.h"
#include "model/model_folder.h"

namespace mc::train {

// The tokens of one conversation.  The tokens from index `answer` on, the last assistant turn with
// its end token, are learned; the tokens before are only context.
struct Sample {
  std::vector<int32_t> tokens;
  int64_t answer = 0;  // The index of the first learned token: at least 1, less than tokens.size().
};

struct Samples {
  std::vector<Sample> kept;
  // The number of conversations left out because they have more than length_max tokens.
  int64_t too_long = 0;
};

// Reads all conversations of a file.  kInvalidInput names the line of the fault: no JSON, no
// messages, no assistant turn at the end, messages that the model's chat template rejects, an
// answer without an end token.  It is also returned if no conversation is left.
Result<Samples> read_samples(const std::filesystem::path& path, const model::Model& model,
                             int64_t length_max);

}  // namespace mc::train

#endif  // MC_TRAIN_SAMPLES_H_
