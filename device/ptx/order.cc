// SPDX-License-Identifier: Apache-2.0
#include "ptx/order.h"

#include <algorithm>

namespace mc::ptx {
namespace {

// Beyond these, accesses count as released.
constexpr size_t kReleasesMax = 1 << 16;
constexpr int64_t kSearchMax = 256;

}  // namespace

void Order::fence(Block& block, Warp& warp) {
  block.covered = std::max(block.covered, block.since);
  block.is_fenced = true;
  warp.fenced = warp.since;
}

void Order::acquire(Block& block, Warp& warp) { warp.acquired = block.acquired_next = number_; }

void Order::release(Block& block, Warp& warp) {
  if (block.covered == 0) return;
  auto& all = releases_[static_cast<uint32_t>(block.number % kBlocksNamed)];
  const Release one{number_ + 1, block.covered, warp.index, warp.fenced};
  const bool is_known = !all.empty() && all.back().covered == one.covered &&
                        all.back().warp == one.warp && all.back().fenced == one.fenced;
  if (is_known || all.size() >= kReleasesMax) return;
  all.push_back(one);
  ++number_;
}

bool Order::is_released(uint32_t block, uint32_t warp, uint32_t since, uint32_t acquired) const {
  const auto found = releases_.find(block);
  if (found == releases_.end()) return false;
  const auto& all = found->second;
  if (all.size() >= kReleasesMax) return true;
  auto last = std::upper_bound(all.begin(), all.end(), acquired,
                               [](uint32_t n, const Release& one) { return n < one.number; });
  for (int64_t left = kSearchMax; last != all.begin(); --left) {
    const Release& one = *--last;
    if (since < one.covered || (warp == one.warp && since <= one.fenced) || left == 0) return true;
  }
  return false;
}

}  // namespace mc::ptx
