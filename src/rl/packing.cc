// SPDX-License-Identifier: Apache-2.0
#include "rl/packing.h"

#include <cstddef>
#include <span>
#include <vector>

#include "core/check.h"

namespace mc::rl {

std::vector<size_t> predicting_positions(std::span<const Segment> segments) {
  std::vector<size_t> positions;
  size_t begin = 0;
  for (const Segment& segment : segments) {
    MC_CHECK(segment.prompt_tokens >= 1);
    const size_t response = begin + segment.prompt_tokens;
    for (size_t i = 0; i < segment.response_tokens; ++i) positions.push_back(response + i - 1);
    begin = response + segment.response_tokens;
  }
  return positions;
}

}  // namespace mc::rl
