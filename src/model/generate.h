// SPDX-License-Identifier: Apache-2.0
//
// Batched generation of answers to prompts: when a sequence ends, another takes its slot at once.
//
// The random draws for a sequence depend only on the seed and on the identity of its Request.  So
// an answer does not depend on the other sequences of the batch, except where the rounding of
// float32 sums decides between two tokens.  Requests with the same prompt that are active at the
// same time share the prompt's pass through the decoder.
#ifndef MC_MODEL_GENERATE_H_
#define MC_MODEL_GENERATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/sampling.h"

namespace mc::model {

struct Request {
  std::string id;
  int64_t sample = 0;
  std::vector<int32_t> prompt;  // Not empty.
};

struct GenerateOptions {
  Sampling sampling = {};
  int64_t tokens_max = 512;  // The maximum number of tokens of an answer.
  int64_t batch = 32;        // The number of concurrent sequences, over all workers.
  int64_t workers = 1;       // The number of threads; each has a share of the batch.
  uint64_t seed = 0;
};

struct Answer {
  std::vector<int32_t> tokens;    // The tokens of the answer, without the end token.
  std::vector<double> log_probs;  // The log-probabilities, including that of the end token.
  bool is_stopped = false;        // True if an end token stopped the answer, not a limit.
  int32_t end = -1;               // The end token; -1 if there is none.
};

// The number of tokens that passed through the decoder.
struct GenerateCounts {
  int64_t prefilled = 0;  // Tokens of prompts.
  int64_t decoded = 0;    // Tokens that were decoded one by one.
};

// Generates answers and calls `done` for each, in the order in which they end, until it returns
// false. A sequence also ends when it has as many tokens as the model has positions.  Errors are
// PyTorch's exceptions.
GenerateCounts generate(const ForwardContext& context, std::span<const Request> requests,
                        const GenerateOptions& options,
                        const std::function<bool(size_t request, const Answer& answer)>& done);

}  // namespace mc::model

#endif  // MC_MODEL_GENERATE_H_
