// SPDX-License-Identifier: Apache-2.0
#include "timing/occupancy.h"

#include <algorithm>

namespace mc::timing {
namespace {

constexpr int64_t kWarpThreads = 32;
constexpr int64_t kWarpsMax = 64;
constexpr int64_t kBlocksMax = 32;
constexpr int64_t kRegistersMax = 65536;
constexpr int64_t kRegisterUnit = 256;  // The registers of a warp.
constexpr int64_t kSharedBytesMax = 227 << 10;
constexpr int64_t kSharedBytesReserved =
    1024;                              // The bytes of each block that are taken by the system.
constexpr int64_t kThreadsMax = 1024;  // The threads of a block.

int64_t round_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

}  // namespace

double occupancy(const BlockNeeds& needs) {
  const int64_t threads = needs.block[0] * needs.block[1] * needs.block[2];
  if (threads <= 0 || threads > kThreadsMax || needs.shared_bytes < 0) return 0;
  const int64_t warps = round_up(threads, kWarpThreads) / kWarpThreads;
  const int64_t registers =
      warps * round_up(std::max<int64_t>(needs.registers, 1) * kWarpThreads, kRegisterUnit);
  const int64_t blocks = std::min({kBlocksMax, kWarpsMax / warps, kRegistersMax / registers,
                                   kSharedBytesMax / (needs.shared_bytes + kSharedBytesReserved)});
  return static_cast<double>(blocks * warps) / static_cast<double>(kWarpsMax);
}

}  // namespace mc::timing
