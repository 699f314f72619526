// SPDX-License-Identifier: Apache-2.0
#include "timing/batch_size.h"

#include <algorithm>

namespace mc::timing {
namespace {

constexpr double kCallUsMin = 0.1;
constexpr double kMiB = 1 << 20;
constexpr double kArenaSlack = 256 * kMiB;
// An arena that is too small costs time, not memory: what does not fit is allocated beside it.
constexpr double kScratchMax = 4096 * kMiB;
constexpr double kOutputsSlack = 1.25;  // For the rounding of an allocator.
constexpr double kDoublesMax =
    8192 * kMiB;  // The reference again in fp64 (harness/judge/reference.py).
constexpr double kInputSets = 3 + 1.0 / 3;  // The last ones for those that come late.
constexpr int kCallsMax = 1 << 20;

int calls_within(const BatchLimits& limits, double calls, double launches, int calls_fit) {
  const double wanted = std::min(calls, limits.launches_max / std::max(launches, 1.0));
  const int most = std::clamp(calls_fit, 1, limits.calls_max);
  return static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(most)));
}

}  // namespace

int choose_calls(const BatchLimits& limits, const CallCost& baseline, int calls_fit) {
  const double calls = limits.batch_us / std::max(baseline.us, kCallUsMin);
  return calls_within(limits, calls, baseline.launches, calls_fit);
}

int choose_calls_beside(const BatchLimits& limits, const CallCost& candidate,
                        const CallCost& baseline, int calls_fit) {
  const double fast_us = std::max(std::min(candidate.us, baseline.us), kCallUsMin);
  const double slow_us = std::max(candidate.us, kCallUsMin) / limits.slowdown_max;
  return calls_within(limits, limits.batch_us / std::max(fast_us, slow_us), candidate.launches,
                      calls_fit);
}

bool is_host_bound(const BatchLimits& limits, double enqueue_call_us, const CallCost& cost) {
  return enqueue_call_us >
         std::max(limits.host_us + limits.host_us_launch * cost.launches, cost.us);
}

double BatchMemory::scratch_bytes() const {
  return std::min(2 * (call.inputs + call.outputs), kScratchMax) + kArenaSlack;
}

// The reference's copy of the inputs; expected and found outputs, and their difference.
double BatchMemory::judge_bytes() const {
  const double doubles = std::min(4 * (call.inputs + call.outputs), kDoublesMax);
  return call.inputs + 3 * call.outputs + doubles;
}

double BatchMemory::arena_bytes(int calls) const {
  return kOutputsSlack * calls * call.outputs + scratch_bytes();
}

int BatchMemory::calls_max(double free_bytes) const {
  const double each = kInputSets * call.inputs + 2 * kOutputsSlack * call.outputs;
  const double left = share * free_bytes - 2 * scratch_bytes() - judge_bytes();
  return static_cast<int>(std::clamp(left / std::max(each, 1.0), 0.0, double{kCallsMax}));
}

}  // namespace mc::timing
