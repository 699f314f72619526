// SPDX-License-Identifier: Apache-2.0
#include "timing/late_inputs.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "core/check.h"

namespace mc::timing {
namespace {

constexpr int kLate = 8;
constexpr int64_t kLateMin = 5;  // Fewer prove nothing.
constexpr double kMargin = 0.1;  // Of a batch: calls need not take equally long.
constexpr double kBatchUsMin = 2000;

}  // namespace

int num_late(int calls) { return calls > 3 * kLate ? kLate : 0; }

std::vector<int64_t> pick_late(int calls, std::mt19937_64& random) {
  const int first = calls - 1 - (calls - 1) / 3;
  std::vector<int64_t> last_third(static_cast<size_t>(calls - 1 - first));
  std::iota(last_third.begin(), last_third.end(), first);
  std::vector<int64_t> picked;
  std::ranges::sample(last_third, std::back_inserter(picked), num_late(calls), random);
  MC_CHECK(picked.size() == static_cast<size_t>(num_late(calls)));
  return picked;
}

Arrival arrival_of(int64_t call, int calls, const Replacement& replacement) {
  MC_CHECK(0 <= call && call < calls && replacement.asked_us <= replacement.replaced_us);
  if (replacement.done_us < kBatchUsMin) return Arrival::kTorn;
  const auto share = [&](int64_t number) { return static_cast<double>(number) / calls; };
  const double begins_us = (share(call) - kMargin) * replacement.done_us;
  const double ends_us = (share(call + 1) + kMargin) * replacement.done_us;
  if (replacement.replaced_us < begins_us) return Arrival::kLate;
  return replacement.asked_us > ends_us ? Arrival::kEarly : Arrival::kTorn;
}

bool is_ahead(const LateCount& count) {
  MC_CHECK(0 <= count.ignored && count.ignored <= count.late);
  return count.late >= kLateMin && 5 * count.ignored >= 4 * count.late;
}

}  // namespace mc::timing
