// SPDX-License-Identifier: Apache-2.0
//
// The choice of the next token from a row of logits.
#ifndef MC_MODEL_SAMPLING_H_
#define MC_MODEL_SAMPLING_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

namespace mc::model {

struct Sampling {
  double temperature = 1;  // The temperature; 0 chooses the likeliest token.
  // Tokens are drawn from the smallest set of likeliest tokens with this probability.
  double top_p = 1;
};

struct Choice {
  int32_t token = 0;
  // The log-probability under softmax(logits / temperature), or softmax(logits) at temperature 0.
  // The softmax is over all tokens, including those that top_p excludes.
  double log_prob = 0;
};

// Chooses a token; `uniform`, a random number in [0, 1), determines it.  REQUIRES: logits is not
// empty, temperature >= 0, 0 < top_p <= 1.
Choice choose_token(std::span<const float> logits, const Sampling& sampling, double uniform);

// Chooses a token for each row of logits_BV on its device, in double precision; only the choices
// are copied to the host.  The tokens are those that choose_token would choose. REQUIRES: as for
// choose_token, with one uniform for each row.
std::vector<Choice> choose_on_device(const at::Tensor& logits_BV, const Sampling& sampling,
                                     std::span<const double> uniforms);

// A random number in [0, 1) that depends on the arguments only: sample `sample` of the row `id`
// uses it to draw its token at index `position`.
double draw(uint64_t seed, std::string_view id, int64_t sample, int64_t position);

}  // namespace mc::model

#endif  // MC_MODEL_SAMPLING_H_
