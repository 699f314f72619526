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

// Offsets in shared memory.
struct Near {
  alignas(32) uint32_t at[kLanes];
};

// Addresses of other spaces, turned into those of this process.
struct Far {
  alignas(32) uint64_t at[kLanes];
  Space space = Space::kGlobal;
  bool is_contiguous = false, is_uniform = false;

  uint8_t* host(int lane) const { return reinterpret_cast<uint8_t*>(at[lane]); }
};

struct Access {
  uint32_t bytes = 4;  // Of a lane; a power of two.
  bool is_write = false;
};

// The lanes' addresses, within memory and aligned. False: the launch ended.
bool resolve_near(LaneWarp& w, const Step* s, Access access, Operand64 operand, Near& near);
bool resolve_far(LaneWarp& w, const Step* s, Access access, Operand64 operand, Space space,
                 Far& far);

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
void check_read_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near);
void check_read_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far);
// Stores values, bytes a lane, with the checks of the space.
void store_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                const uint8_t* values);
void store_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, const uint8_t* values);

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_ACCESS_H_
