// SPDX-License-Identifier: Apache-2.0
#include "timing/occupancy.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mc::timing {
namespace {

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kThreadsMax = 1024;      // The most threads of a block.
constexpr int64_t kRegistersUnit = 256;    // The allocation unit of a warp's registers.
constexpr int64_t kSharedUnit = 128;       // The allocation unit of a block's shared memory.
constexpr int64_t kSharedReserved = 1024;  // The bytes of each block that the system reserves.

int64_t rounded_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Occupancy occupancy_of(int64_t threads, int64_t registers, int64_t shared_bytes) {
  MC_CHECK(threads > 0 && shared_bytes >= 0);
  const int64_t warps = (threads + kWarpThreads - 1) / kWarpThreads;
  const int64_t registers_of_warp =
      rounded_up(std::max<int64_t>(registers, 1) * kWarpThreads, kRegistersUnit);
  const int64_t shared = rounded_up(shared_bytes + kSharedReserved, kSharedUnit);
  const std::pair<const char*, int64_t> limits[] = {
      {"warps", kWarpsMax / warps},
      {"blocks", kBlocksMax},
      {"registers", kRegistersMax / registers_of_warp / warps},
      {"shared memory", kSharedBytesMax / shared}};
  const auto* least = std::ranges::min_element(
      limits, [](const auto& one, const auto& other) { return one.second < other.second; });
  return {least->second, least->second * warps, least->first};
}

double occupancy(const BlockNeeds& needs) {
  const int64_t threads = needs.block[0] * needs.block[1] * needs.block[2];
  if (threads <= 0 || threads > kThreadsMax || needs.shared_bytes < 0) return 0;
  const int64_t warps = occupancy_of(threads, needs.registers, needs.shared_bytes).warps;
  return static_cast<double>(warps) / static_cast<double>(kWarpsMax);
}

}  // namespace mc::timing
