// SPDX-License-Identifier: Apache-2.0
#include "rl/aggregation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "core/check.h"

namespace mc::rl {
namespace {

struct Denominator {
  double length;
  const BatchSize& batch;

  double operator()(const SequenceMean&) const {
    return static_cast<double>(batch.num_sequences) * length;
  }
  double operator()(const TokenMean&) const { return static_cast<double>(batch.num_tokens); }
  double operator()(const DrGrpo& dr) const {
    MC_CHECK(dr.length_max > 0);
    return static_cast<double>(batch.num_sequences) * dr.length_max;
  }
};

}  // namespace

size_t count_trained(std::span<const uint8_t> mask) {
  return mask.size() - static_cast<size_t>(std::count(mask.begin(), mask.end(), 0));
}

double token_weight(const Aggregation& aggregation, size_t num_tokens, const BatchSize& batch) {
  MC_CHECK(batch.num_sequences >= 1 && batch.num_tokens >= num_tokens);
  if (num_tokens == 0) return 0;
  return 1 / std::visit(Denominator{static_cast<double>(num_tokens), batch}, aggregation);
}

}  // namespace mc::rl
