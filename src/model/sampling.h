// SPDX-License-Identifier: Apache-2.0
//
// The next token from a row of logits.
#ifndef MC_MODEL_SAMPLING_H_
#define MC_MODEL_SAMPLING_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mc::model {

struct Sampling {
  double temperature = 1;  // 0 takes the likeliest token.
  double top_p = 1;        // The smallest set of likeliest tokens with this probability.
};

struct Choice {
  int32_t token = 0;
  // The value under softmax(logits / temperature), or softmax(logits) at temperature 0; over all
  // tokens, not over those that top_p left.
  double log_prob = 0;
};

// `uniform`, from 0 to below 1, decides.  REQUIRES: logits is not empty, temperature >= 0,
// 0 < top_p <= 1.
Choice choose_token(std::span<const float> logits, const Sampling& sampling, double uniform);

// The same for each row of logits_BV, where they are, in double precision; only the choices come to
// the host.  It draws the tokens that choose_token draws.
// REQUIRES: as choose_token, with a uniform for each row.
std::vector<Choice> choose_on_device(const at::Tensor& logits_BV, const Sampling& sampling,
                                     std::span<const double> uniforms);

// A number from 0 to below 1 that the arguments determine: the one with which sample `sample` of
// the row `id` draws its token number `position`, whatever is computed beside it.
double draw(uint64_t seed, std::string_view id, int64_t sample, int64_t position);

}  // namespace mc::model

#endif  // MC_MODEL_SAMPLING_H_
