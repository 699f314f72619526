// SPDX-License-Identifier: Apache-2.0
//
// Accesses of a warp to memory, for handlers: addresses of the lanes, bounds, races.
//
// If all lanes are active, and the addresses of each Run of lanes are consecutive or all equal, one
// check covers the run. Other accesses are checked lane by lane.
#ifndef MC_PTX_ACCESS_H_
#define MC_PTX_ACCESS_H_

#include "ptx/lanes.h"
#include "ptx/shadow.h"

namespace mc::ptx::MC_PTX_VARIANT {

// The addresses of a step's lanes, before they are checked.
struct Operand64 {
  uint32_t base = 0;   // The frame offset of the register.
  int64_t offset = 0;  // The constant that is added to it.
  bool is_wide = true;
};

MC_INLINE Operand64 address_operand(const Step* s) {
  return {s->a, s->immediate, (s->flags & kWideAddress) != 0};
}

MC_INLINE Space space_of(const Step* s) { return static_cast<Space>(s->flags & kSpaceMask); }

// Addresses outside shared memory, and the offset from device to process addresses.
struct Far {
  alignas(32) uint64_t at[kLanes];
  uint64_t base = 0;
  Space space = Space::kGlobal;
  bool has_unwritten = false;  // The lanes' allocations may have unwritten bytes.

  MC_INLINE uint8_t* host(int lane) const { return reinterpret_cast<uint8_t*>(at[lane] + base); }
};

struct Access {
  uint32_t bytes = 4;  // A lane's part, a power of two.
  bool is_write = false;
};

template <class T>
MC_INLINE void add_offset(LaneWarp& w, Operand64 operand, T* at) {
  const T offset = static_cast<T>(operand.offset);
  if (operand.is_wide) {
    const uint64_t* r = w.at<uint64_t>(operand.base);
    MC_LANES at[l] = static_cast<T>(r[l]) + offset;
  } else {
    const uint32_t* r = w.at<uint32_t>(operand.base);
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

// ---- Runs of lanes.
constexpr int kRun = 16, kRuns = kLanes / kRun;

template <class T>
struct Run {
  T base = 0;
  bool is_row = false;  // Consecutive addresses; otherwise all are equal.
};

// False if the addresses are neither consecutive nor equal.
template <class T>
MC_INLINE bool find_runs(const T* at, uint32_t bytes, Run<T> (&runs)[kRuns]) {
  constexpr int kParts = 32 / sizeof(T);
  using Part [[gnu::vector_size(32)]] = T;
  Part first, gap = {};
  for (int k = 0; k < kParts; ++k) first[k] = static_cast<T>(k) * bytes;
  for (int r = 0; r < kRuns; ++r) {
    const T *lane = at + r * kRun, base = lane[0], step = lane[1] - base;
    if (step != 0 && step != bytes) return false;
    Part expected = (step != 0 ? first : Part{}) + base;
    for (int k = 0; k < kRun; k += kParts) {
      Part part;
      memcpy(&part, lane + k, sizeof part);
      gap |= part ^ expected;
      expected += kParts * step;
    }
    runs[r] = {base, step != 0};
  }
  T any = 0;
  for (int k = 0; k < kParts; ++k) any |= gap[k];
  return any == 0;
}

// True if all runs are within a range of memory, and aligned.
template <class T>
MC_INLINE bool are_inside(const Run<T> (&runs)[kRuns], T begin, T end, uint32_t bytes) {
  bool inside = true;
  for (const Run<T>& run : runs) {
    const T size = run.is_row ? kRun * bytes : bytes;
    inside &= run.base >= begin && run.base <= end && end - run.base >= size &&
              (run.base & (bytes - 1)) == 0;
  }
  return inside;
}

// Runs that are one row of the whole warp.
template <class T>
MC_INLINE bool is_one_row(const Run<T> (&runs)[kRuns], uint32_t bytes) {
  bool is_row = true;
  for (int r = 0; r < kRuns; ++r) {
    is_row &= runs[r].is_row && runs[r].base - runs[0].base == static_cast<T>(r) * kRun * bytes;
  }
  return is_row;
}

// The addresses of a whole warp, if they form runs in the range that this code hit last.
MC_INLINE bool find_global_runs(LaneWarp& w, const Step* s, uint32_t bytes,
                                Run<uint64_t> (&runs)[kRuns]) {
  const SiteRange& range = w.block->sites[s->site];
  if (!w.is_full() || (s->flags & (kWideAddress | kStrong)) != kWideAddress) return false;
  if (!find_runs(w.at<uint64_t>(s->a), bytes, runs)) return false;
  for (Run<uint64_t>& run : runs) run.base += static_cast<uint64_t>(s->immediate);
  return are_inside(runs, range.begin, range.end, bytes);
}

// ---- Checks that addresses are in memory and aligned. False: the launch ended.

// Out of line: reports the first lane that is out of bounds, and returns false.
bool report_outside(LaneWarp& w, const Step* s, Access access, const Near& near);
bool resolve_global(LaneWarp& w, const Step* s, Access access, Far& far);
// Local memory and parameters.
bool resolve_window(LaneWarp& w, const Step* s, Access access, Space space, Far& far);

MC_INLINE bool check_near(LaneWarp& w, const Step* s, Access access, const Near& near) {
  const uint32_t bytes = w.block->shared_bytes;
  if (bytes >= access.bytes &&
      !any_outside<uint32_t>(w, near.at, 0, bytes - access.bytes, access.bytes - 1)) {
    return true;
  }
  return report_outside(w, s, access, near);
}

MC_INLINE bool resolve_near(LaneWarp& w, const Step* s, Access access, Operand64 operand,
                            Near& near) {
  add_offset(w, operand, near.at);
  return check_near(w, s, access, near);
}

MC_INLINE bool resolve_far(LaneWarp& w, const Step* s, Access access, Operand64 operand,
                           Space space, Far& far) {
  add_offset(w, operand, far.at);
  far.space = space;
  if (space == Space::kGlobal) return resolve_global(w, s, access, far);
  return resolve_window(w, s, access, space, far);
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

MC_INLINE bool are_quiet(const LaneWarp& w, uint32_t granule, uint32_t count) {
  const uint32_t *quiet = w.block->shared_shadow.quiet + granule, many = w.block->since;
  uint32_t loud = 0;
  for (uint32_t k = 0; k < count; ++k) {
    loud |= static_cast<uint32_t>(quiet[k] != many) & static_cast<uint32_t>(quiet[k] != w.since);
  }
  return loud == 0;
}

// Out of line: strong reads.
void read_near_strongly(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near);
// Reads, lane by lane, of words that are not quiet (shadow.h).
void read_lanes(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near, Mask lanes);
// The same for a run; `repeats`: the next run reads the same words.
void read_run(LaneWarp& w, const Step* s, uint32_t bytes, Run<uint32_t> run, int first_lane,
              bool repeats);

// The lanes whose words are not all quiet.
MC_INLINE Mask loud_lanes(LaneWarp& w, uint32_t per, int shift, const Near& near) {
  if (per != 1) {
    Mask loud = 0;
    for (int l = 0; l < kLanes; ++l) {
      loud |= Mask{!are_quiet(w, near.at[l] >> shift, per)} << l;
    }
    return loud & w.active;
  }
  const uint32_t many = w.block->since, own = w.since;
  alignas(32) uint32_t offsets[kLanes], stamps[kLanes];
  alignas(32) int32_t loud[kLanes];
  MC_LANES offsets[l] = near.at[l] >> shift << 2;
  gather(reinterpret_cast<const uint8_t*>(w.block->shared_shadow.quiet), offsets, stamps);
  MC_LANES loud[l] = (stamps[l] != many) & (stamps[l] != own) ? -1 : 0;
  return mask_of(loud) & w.active;
}

MC_INLINE void check_read_near(LaneWarp& w, const Step* s, uint32_t bytes, Near& near) {
  if (!w.block->checks_races) return;
  if (s->flags & kStrong) return read_near_strongly(w, s, bytes, near);
  if (!w.is_full()) {
    // Inactive lanes have no valid address.
    const uint32_t first = near.at[lowest(w.active)];
    MC_LANES near.at[l] = w.chosen[l] ? near.at[l] : first;
  }
  const int shift = w.block->program->granule_shift;
  const uint32_t per = granules(bytes, shift);
  // Four words, as in ldmatrix, have a specialised loop.
  const Mask loud = per == 4 ? loud_lanes(w, 4, shift, near) : loud_lanes(w, per, shift, near);
  if (loud != 0) read_lanes(w, s, bytes, near, loud);
}

MC_INLINE void check_read_runs(LaneWarp& w, const Step* s, uint32_t bytes,
                               const Run<uint32_t> (&runs)[kRuns]) {
  const int shift = w.block->program->granule_shift;
  const uint32_t per = granules(bytes, shift);
  for (int r = 0; r < kRuns; ++r) {
    const bool repeats =
        r + 1 < kRuns && runs[r].base == runs[r + 1].base && runs[r].is_row == runs[r + 1].is_row;
    const uint32_t granule = runs[r].base >> shift;
    const bool is_quiet =
        runs[r].is_row ? are_quiet(w, granule, kRun * per) : are_quiet(w, granule, per);
    if (!is_quiet) read_run(w, s, bytes, runs[r], r * kRun, repeats);
    if (repeats) ++r;
  }
}

// Calls f with each line of a row of granules, and with the line's granules that lanes touch.
template <class F>
MC_INLINE void each_line(LaneWarp& w, uint64_t granule, uint32_t count, int shift_per, int lane,
                         F f) {
  const Block& block = *w.block;
  const uint32_t who = block.name << kBlockShift | static_cast<uint32_t>(w.thread(lane));
  for (uint32_t done = 0; done < count;) {
    const uint32_t index = static_cast<uint32_t>(granule + done) & 31, left = count - done;
    const uint32_t here = left < 32 - index ? left : 32 - index;
    const uint32_t bits = static_cast<uint32_t>((uint64_t{1} << here) - 1) << index;
    f((granule + done) >> kLineShift,
      Touch{w.stamp, bits, who + (done >> shift_per), static_cast<uint32_t>(shift_per)});
    done += here;
  }
}

MC_INLINE int shift_of(uint32_t per) { return __builtin_ctz(per); }

MC_INLINE uint64_t global_granule(const Block& block, uint64_t address) {
  return (address - kGlobalBase) >> block.program->granule_shift;
}

// Reads of consecutive bytes from an address on, by a lane and the lanes after it.
MC_INLINE void check_read_row(LaneWarp& w, const Step* s, uint64_t address, uint32_t bytes,
                              int lane, int lanes) {
  Block& block = *w.block;
  const uint32_t per = granules(bytes, block.program->granule_shift);
  each_line(
      w, global_granule(block, address), per * static_cast<uint32_t>(lanes), shift_of(per), lane,
      [&](uint64_t index, const Touch& touch) {
        Line& line = block.global_shadow.lines[index];
        const bool is_unwritten = line.written.since < block.launch_since;
        if (block.reads_by_words) {
          read_global(block, w, s, index, touch);
        } else if (is_unwritten && line.read.since < block.launch_since) {
          line.read = touch;
        } else if (!is_unwritten || line.read.who != touch.who || line.read.mask != touch.mask) {
          read_global(block, w, s, index, touch);
        }
      });
}

// The same of a run.
MC_INLINE void check_read_run(LaneWarp& w, const Step* s, Run<uint64_t> run, uint32_t bytes,
                              int lane) {
  if (run.is_row) return check_read_row(w, s, run.base, bytes, lane, kRun);
  const int readers = w.block->reads_by_words ? kRun : 1;
  for (int k = 0; k < readers; ++k) check_read_row(w, s, run.base, bytes, lane + k, 1);
}

// Notes reads of bytes that nothing wrote: unwritten.h.
[[gnu::cold]] void note_unwritten_runs(LaneWarp& w, const Step* s, uint32_t bytes,
                                       const Run<uint64_t> (&runs)[kRuns]);
[[gnu::cold]] void note_unwritten_lanes(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far);
void check_read_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far);
// A strong access by a lane to global memory.
void touch_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, int lane, Strong kind,
               bool changes);

// Stores values of `bytes` bytes per lane, with the checks of the space.
void store_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                const uint8_t* values);
void store_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, const uint8_t* values);
// Stores a row of the whole warp. False, without storing, if other threads touched it.
bool store_row(LaneWarp& w, uint32_t bytes, uint64_t address, const uint8_t* values);

}  // namespace mc::ptx::MC_PTX_VARIANT

#endif  // MC_PTX_ACCESS_H_
