// SPDX-License-Identifier: Apache-2.0
//
// Answers to prompts, many at a time: a sequence that ends makes room for the next one at once.
//
// The draws for a sequence depend on its own identity (Request) and the seed alone, so an answer
// does not depend on what is computed beside it, as far as float32 sums of another order leave the
// order of two tokens alone.  Requests with the same prompt that are in work at the same time share
// its pass through the decoder.
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
  int64_t tokens_max = 512;  // The limit of an answer.
  int64_t batch = 32;        // Sequences at a time, of all workers together.
  int64_t workers = 1;       // Threads, each with a share of the batch.
  uint64_t seed = 0;
};

struct Answer {
  std::vector<int32_t> tokens;    // Without the one that ended it.
  std::vector<double> log_probs;  // With that one.
  bool is_stopped = false;        // An end token stopped it, not a limit.
  int32_t end = -1;               // That token, where there is one.
};

// How many tokens passed the decoder.
struct GenerateCounts {
  int64_t prefilled = 0;  // Tokens of prompts.
  int64_t decoded = 0;    // Tokens that were generated one by one.
};

// Calls `done` for each request, in the order in which they end, until it returns false.  A
// sequence also ends when it is as long as the model's positions.  Errors are PyTorch's exceptions.
GenerateCounts generate(const ForwardContext& passage, std::span<const Request> requests,
                        const GenerateOptions& options,
                        const std::function<bool(size_t request, const Answer& answer)>& done);

}  // namespace mc::model

#endif  // MC_MODEL_GENERATE_H_
