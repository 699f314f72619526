// SPDX-License-Identifier: Apache-2.0
//
// Steps that count. If the device counts, the decoder puts each before the step that it counts.
#include "ptx/counts.h"

#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

constexpr int kBanks = 32;
constexpr uint32_t kBankBytes = 4, kSectorShift = 5;

// Distinct values in order.
struct Distinct {
  uint64_t values[kLanes];
  int size = 0;

  // False if the value is there already.
  bool add(uint64_t value) {
    int at = size;
    while (at > 0 && values[at - 1] > value) --at;
    if (at > 0 && values[at - 1] == value) return false;
    for (int k = size; k > at; --k) values[k] = values[k - 1];
    values[at] = value;
    ++size;
    return true;
  }
};

void count_far(RequestCounts& counts, const uint64_t* at, Mask lanes) {
  if (lanes == 0) return;
  Distinct sectors;
  for (Mask left = lanes; left != 0; left &= left - 1) {
    sectors.add(at[lowest(left)] >> kSectorShift);
  }
  ++counts.requests;
  counts.sectors += static_cast<uint64_t>(sectors.size);
}

// The passes for some lanes. Lanes that read the same word share a pass; atomics on it take one
// each.
int passes_of(const uint64_t* at, Mask lanes, uint32_t bytes, bool is_atomic) {
  Distinct words;
  int most = 0, in_bank[kBanks] = {};
  for (Mask left = lanes; left != 0; left &= left - 1) {
    const uint64_t first = at[lowest(left)] / kBankBytes;
    for (uint64_t word = first; word < first + (bytes + 3) / kBankBytes; ++word) {
      if (!words.add(word) && !is_atomic) continue;
      const int passes = ++in_bank[word % kBanks];
      most = passes > most ? passes : most;
    }
  }
  return most;
}

// Wide accesses are served for as many lanes at a time as have 128 bytes.
void count_near(Counts& counts, const uint64_t* at, Mask lanes, uint32_t bytes, bool is_atomic) {
  const int together = bytes <= kBankBytes ? kBanks : static_cast<int>(kBanks * kBankBytes / bytes);
  const Mask some = together == kLanes ? kAllLanes : bit(together) - 1;
  for (int first = 0; first < kLanes; first += together) {
    const Mask here = lanes & some << first;
    if (here == 0) continue;
    counts.shared_passes += static_cast<uint64_t>(passes_of(at, here, bytes, is_atomic));
    ++counts.shared_passes_least;
  }
}

const Step* count_instruction(Warp& base, const Step* s) {
  const LaneWarp& w = lanes_of(base);
  ++w.block->counts->instructions;
  w.block->counts->lanes += static_cast<uint64_t>(count(w.active));
  return s + 1;
}

// Counts the next step's access: c bytes per lane, of kind e, by b lanes, or by the active lanes if
// b is 0.
const Step* count_access(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  Counts& counts = *w.block->counts;
  const auto kind = static_cast<Counted>(s->e);
  RequestCounts& far = kind == Counted::kLoad    ? counts.loads
                       : kind == Counted::kStore ? counts.stores
                                                 : counts.atomics;
  alignas(32) uint64_t at[kLanes];
  add_offset(w, address_operand(s), at);
  const Mask lanes = s->b == 0        ? w.active
                     : s->b == kLanes ? kAllLanes
                                      : bit(static_cast<int>(s->b)) - 1;
  const Space space = space_of(s);
  Mask near = space == Space::kShared ? lanes : 0, global = space == Space::kGlobal ? lanes : 0;
  for (Mask left = space == Space::kGeneric ? lanes : 0; left != 0; left &= left - 1) {
    const int l = lowest(left);
    const uint64_t window = at[l] >> kWindowShift;
    if (window == kSharedWindow >> kWindowShift) near |= bit(l);
    if (window < kParamWindow >> kWindowShift) global |= bit(l);
  }
  count_far(far, at, global);
  count_near(counts, at, near, s->c, kind == Counted::kAtomic);
  return s + 1;
}

}  // namespace

void add_counts(PlainHandlers& handlers) {
  handlers.count_instruction = count_instruction;
  handlers.count_access = count_access;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
