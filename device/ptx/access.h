// SPDX-License-Identifier: Apache-2.0
//
// Accesses of a warp to memory, for handlers: addresses of the lanes, bounds, races.
#ifndef MC_PTX_ACCESS_H_
#define MC_PTX_ACCESS_H_

#include "ptx/lanes.h"
#include "ptx/shadow.h"

namespace mc::ptx::MC_PTX_VARIANT {

// The addresses that the lanes of a step name, before they are checked.
struct Operand64 {
  uint32_t place = 0;
  int64_t offset = 0;
  bool is_wide = true;
};

MC_INLINE Operand64 address_operand(const Step* s) {
  return {s->a, s->immediate, (s->flags & kWideAddress) != 0};
}

MC_INLINE Space space_of(const Step* s) { return static_cast<Space>(s->flags & kSpaceMask); }

// Addresses of other spaces, and what makes them those of this process.
struct Far {
  alignas(32) uint64_t at[kLanes];
  uint64_t base = 0;
  Space space = Space::kGlobal;
  bool is_contiguous = false, is_uniform = false;

  MC_INLINE uint8_t* host(int lane) const { return reinterpret_cast<uint8_t*>(at[lane] + base); }
};

struct Access {
  uint32_t bytes = 4;  // A lane's part, a power of two.
  bool is_write = false;
};

MC_INLINE uint32_t quiet_stamp(const LaneWarp& w) {
  return 1U << 31 | (w.block->epoch & 0xFFFF) << 15 | w.index << 10 | (w.sync & 0x3FF);
}

template <class T>
MC_INLINE void add_offset(LaneWarp& w, Operand64 operand, T* at) {
  const T offset = static_cast<T>(operand.offset);
  if (operand.is_wide) {
    const uint64_t* r = w.at<uint64_t>(operand.place);
    MC_LANES at[l] = static_cast<T>(r[l]) + offset;
  } else {
    const uint32_t* r = w.at<uint32_t>(operand.place);
    const uint32_t low = static_cast<uint32_t>(operand.offset);
    MC_LANES at[l] = r[l] + low;
  }
}

template <class T>
MC_INLINE bool any_outside(LaneWarp& w, const T* at, T begin, T room, T align) {
  alignas(32) T bad = 0;
  if (w.is_full()) {
    MC_LANES bad |= static_cast<T>(at[l] - begin > room) | (at[l] & align);
  } else {
    MC_LANES {
      const T here = static_cast<T>(at[l] - begin > room) | (at[l] & align);
      bad |= w.chosen[l] ? here : 0;
    }
  }
  return bad != 0;
}

// Out of line: reports the first lane that is outside, and is false.
bool report_outside(LaneWarp& w, const Step* s, Access access, const Near& near);
// True if each lane is in an allocation, not all in one. Reports a lane that is not.
bool resolve_each(LaneWarp& w, const Step* s, Access access, const Far& far);
// Local memory and parameters.
bool resolve_window(LaneWarp& w, const Step* s, Access access, Space space, Far& far);

// The lanes' addresses, within memory and aligned. False: the launch ended.
MC_INLINE void find_patterns(LaneWarp& w, uint32_t bytes, Far& far) {
  uint64_t gap = 0, difference = 0;
  far.is_contiguous = far.is_uniform = false;
  if (!w.is_full()) {
    const uint64_t first = far.at[lowest(w.active)];
    MC_LANES difference |= w.chosen[l] ? far.at[l] ^ first : 0;
    far.is_uniform = difference == 0;
  } else if (far.at[1] - far.at[0] == bytes) {
    MC_LANES gap |= far.at[l] - far.at[0] - static_cast<uint64_t>(l) * bytes;
    far.is_contiguous = gap == 0;
  } else if (far.at[1] == far.at[0]) {
    MC_LANES difference |= far.at[l] ^ far.at[0];
    far.is_uniform = difference == 0;
  }
}

MC_INLINE bool is_inside(LaneWarp& w, const SiteRange& range, uint32_t bytes, const Far& far) {
  if (range.end < range.begin + bytes) return false;
  const uint64_t room = range.end - range.begin - bytes, align = bytes - 1;
  const uint64_t first = far.at[lowest(w.active)];
  if (far.is_uniform) return first - range.begin <= room && (first & align) == 0;
  if (far.is_contiguous) {
    const bool begins_inside = first >= range.begin && first <= range.end;
    return begins_inside && uint64_t{kLanes} * bytes <= range.end - first && (first & align) == 0;
  }
  return !any_outside<uint64_t>(w, far.at, range.begin, room, align);
}

MC_INLINE bool resolve_global(LaneWarp& w, const Step* s, Access access, Far& far) {
  Block& block = *w.block;
  SiteRange& range = block.sites[s->site];
  if (!is_inside(w, range, access.bytes, far)) {
    SiteRange found;
    const bool is_known = find_allocation(block, far.at[lowest(w.active)], found);
    if (is_known) range = found;
    if (!is_known || !is_inside(w, range, access.bytes, far)) {
      if (!resolve_each(w, s, access, far)) return false;
    }
  }
  far.base = reinterpret_cast<uint64_t>(block.global);
  return true;
}

MC_INLINE bool resolve_near(LaneWarp& w, const Step* s, Access access, Operand64 operand,
                            Near& near) {
  add_offset(w, operand, near.at);
  const uint32_t bytes = w.block->shared_bytes;
  if (bytes >= access.bytes &&
      !any_outside<uint32_t>(w, near.at, 0, bytes - access.bytes, access.bytes - 1)) {
    return true;
  }
  return report_outside(w, s, access, near);
}

MC_INLINE bool resolve_far(LaneWarp& w, const Step* s, Access access, Operand64 operand,
                           Space space, Far& far) {
  add_offset(w, operand, far.at);
  far.space = space;
  if (space == Space::kLocal || space == Space::kParam) {
    const uint64_t window = space == Space::kLocal ? kLocalWindow : kParamWindow;
    MC_LANES far.at[l] = far.at[l] >= window ? far.at[l] - window : far.at[l];
    return resolve_window(w, s, access, space, far);
  }
  find_patterns(w, access.bytes, far);
  return resolve_global(w, s, access, far);
}

// The space that the lowest active lane's generic address is in, and the lanes that share it.
Space generic_space(LaneWarp& w, Operand64 operand, Mask& same);

// Runs a handler of a generic access for the lanes of one space after the other.
template <class F>
MC_INLINE const Step* by_space(LaneWarp& w, const Step* s, Operand64 operand, F f) {
  const Mask all = w.active;
  for (Mask left = all; left != 0;) {
    Mask same = 0;
    w.set(left);
    const Space space = generic_space(w, operand, same);
    if (same != left) w.set(same);
    if (!f(space)) return stop_warp(w);
    left &= ~same;
  }
  w.set(all);
  return s + 1;
}

// ---- Races. Reads are checked before, writes with their values before they are done.
MC_INLINE uint32_t granules(uint32_t bytes, int shift) {
  const uint32_t per = bytes >> shift;
  return per == 0 ? 1 : per;
}

// Out of line: reads of words that are not quiet.
template <uint32_t kPer>
void read_loud(LaneWarp& w, const Step* s, const Near& near, Mask loud);

// The words at byte offsets from memory.
MC_INLINE void gather(const uint8_t* memory, const uint32_t* at, uint32_t* words) {
#ifdef __AVX2__
  for (int l = 0; l < kLanes; l += 8) {
    const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(at + l));
    const __m256i found = _mm256_i32gather_epi32(reinterpret_cast<const int*>(memory), eight, 1);
    _mm256_store_si256(reinterpret_cast<__m256i*>(words + l), found);
  }
#else
  MC_LANES memcpy(words + l, memory + at[l], sizeof(uint32_t));
#endif
}

// The lanes whose words are not all quiet.
template <uint32_t kPer>
MC_INLINE Mask loud_lanes(LaneWarp& w, const Near& near, int shift) {
  const uint32_t *quiet = w.block->shadow.quiet, many = w.block->epoch, own = quiet_stamp(w);
  alignas(32) int32_t loud[kLanes];
  if constexpr (kPer == 1) {
    alignas(32) uint32_t places[kLanes], stamps[kLanes];
    MC_LANES places[l] = near.at[l] >> shift << 2;
    gather(reinterpret_cast<const uint8_t*>(quiet), places, stamps);
    MC_LANES loud[l] = (stamps[l] != many) & (stamps[l] != own) ? -1 : 0;
    return mask_of(loud) & w.active;
  }
  for (int l = 0; l < kLanes; ++l) {
    const uint32_t* stamps = quiet + (near.at[l] >> shift);
    uint32_t any = 0;
    for (uint32_t k = 0; k < kPer; ++k) {
      any |= static_cast<uint32_t>(stamps[k] != many) & static_cast<uint32_t>(stamps[k] != own);
    }
    loud[l] = -static_cast<int32_t>(any);
  }
  return mask_of(loud) & w.active;
}

template <uint32_t kPer>
MC_INLINE void check_read_of(LaneWarp& w, const Step* s, const Near& near, int shift) {
  const Mask loud = loud_lanes<kPer>(w, near, shift);
  if (loud != 0) read_loud<kPer>(w, s, near, loud);
}

MC_INLINE void check_read_near(LaneWarp& w, const Step* s, uint32_t bytes, Near& near) {
  if (!w.block->checks_races) return;
  const int shift = w.block->program->granule_shift;
  if (!w.is_full()) {
    // Lanes that do not take part have no address that could be looked at.
    const uint32_t first = near.at[lowest(w.active)];
    MC_LANES near.at[l] = w.chosen[l] ? near.at[l] : first;
  }
  switch (granules(bytes, shift)) {
    case 1:
      return check_read_of<1>(w, s, near, shift);
    case 2:
      return check_read_of<2>(w, s, near, shift);
    case 4:
      return check_read_of<4>(w, s, near, shift);
    case 8:
      return check_read_of<8>(w, s, near, shift);
    default:
      return check_read_of<16>(w, s, near, shift);
  }
}

// True if no granule of a row was written in this launch.
MC_INLINE bool is_untouched(const Block& block, uint64_t granule, uint32_t count) {
  const uint32_t *written = block.global_written_in + granule, launch = block.launch_epoch;
  uint32_t touched = 0;
  for (uint32_t k = 0; k < count; ++k) touched |= static_cast<uint32_t>(written[k] >= launch);
  return touched == 0;
}

MC_INLINE uint64_t global_granule(const Block& block, const Far& far, int lane) {
  return (far.at[lane] - kGlobalBase) >> block.program->granule_shift;
}

// Out of line: reads that are no row of untouched words.
void check_read_each(LaneWarp& w, const Step* s, uint32_t per, const Far& far);

MC_INLINE void check_read_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far) {
  const Block& block = *w.block;
  if (far.space != Space::kGlobal || !block.checks_races || (s->flags & kStrong)) return;
  const uint32_t per = granules(bytes, block.program->granule_shift);
  if (far.is_contiguous && is_untouched(block, global_granule(block, far, 0), kLanes * per)) return;
  check_read_each(w, s, per, far);
}

// Stores values, bytes a lane, with the checks of the space.
void store_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                const uint8_t* values);
void store_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, const uint8_t* values);

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_ACCESS_H_
