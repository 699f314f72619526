// SPDX-License-Identifier: Apache-2.0
#include "timing/batch_size.h"

#include <algorithm>

namespace mc::timing {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kArenaSlack = 256 * kMiB;
// An arena that is too small costs time, not memory: what does not fit is allocated beside it.
constexpr double kScratchMax = 4096 * kMiB;
constexpr double kOutputsSlack = 1.25;  // For the rounding of an allocator.
constexpr double kDoublesMax =
    8192 * kMiB;  // The reference again in fp64 (harness/judge/reference.py).
constexpr int kCallsMax = 1 << 20;

}  // namespace

double BurstRoom::scratch_bytes() const {
  return std::min(2 * (call.inputs + call.outputs), kScratchMax) + kArenaSlack;
}

// The reference's copy of the inputs; expected and found outputs, and their difference.
double BurstRoom::judge_bytes() const {
  const double doubles = std::min(4 * (call.inputs + call.outputs), kDoublesMax);
  return call.inputs + 3 * call.outputs + doubles;
}

double BurstRoom::arena_bytes(int calls) const {
  return kOutputsSlack * calls * call.outputs + scratch_bytes();
}

int BurstRoom::calls_max(double free_bytes) const {
  const double each = 3 * call.inputs + 2 * kOutputsSlack * call.outputs;
  const double left = share * free_bytes - 2 * scratch_bytes() - judge_bytes();
  return static_cast<int>(std::clamp(left / std::max(each, 1.0), 0.0, double{kCallsMax}));
}

}  // namespace mc::timing
