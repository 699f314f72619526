// SPDX-License-Identifier: Apache-2.0
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// ---- Addresses.
template <class T>
bool report_outside_of(LaneWarp& w, const Step* s, Access access, const T* at, Space space, T begin,
                       T room) {
  for (int l = 0; l < kLanes; ++l) {
    const bool is_bad = at[l] - begin > room || (at[l] & (access.bytes - 1)) != 0;
    if (!has(w.active, l) || !is_bad) continue;
    report_access(*w.block, w, s, access.is_write, w.thread(l), space, at[l],
                  static_cast<int>(access.bytes));
    break;
  }
  return false;
}

// ---- Reads of shared memory.
// A read of a word that was written before the last barrier, by a lane or by several ones of this
// warp. False where it needs a closer look.
MC_INLINE bool read_plain(const Block& block, uint32_t granule, uint32_t warp, uint32_t mine,
                          uint32_t own) {
  const SharedShadow& shadow = block.shadow;
  const uint32_t written = shadow.written_in[granule];
  if (written >= block.epoch || written < block.first_epoch) return false;
  uint32_t& reader = shadow.reader[granule];
  if (shadow.read_in[granule] < block.epoch) {
    shadow.read_in[granule] = block.epoch;
    reader = mine;
    if (mine & kManyLanes) shadow.quiet[granule] = own;
    return true;
  }
  if (reader & kManyWarps || (reader & kThreadMask) / kLanes != warp) {
    reader |= kManyWarps;
    shadow.quiet[granule] = block.epoch;
    return true;
  }
  const bool is_alone = !((reader | mine) & kManyLanes) && !((reader ^ mine) & kThreadMask);
  reader = is_alone ? mine : mine | kManyLanes;
  if (!is_alone) shadow.quiet[granule] = own;
  return true;
}

constexpr int kRun = 16;  // Lanes whose words are looked at together where they are in a row.

struct RowState {
  uint32_t is_plain, is_fresh, is_again, is_far, is_near;
};

// The words of a row have this in common: plain ones were written before the last barrier; fresh
// ones were not read since; far ones were read by other warps, near ones by other lanes of this.
template <uint32_t kPer>
MC_INLINE RowState state_of_row(const Block& block, uint32_t granule, uint32_t warp,
                                uint32_t first_thread) {
  const SharedShadow& shadow = block.shadow;
  const uint32_t *written = shadow.written_in + granule, *read = shadow.read_in + granule;
  const uint32_t *reader = shadow.reader + granule, epoch = block.epoch;
  RowState state{1, 1, 1, 1, 1};
  for (uint32_t k = 0; k < kRun * kPer; ++k) {
    const uint32_t many = reader[k] >> 31, thread = reader[k] & kThreadMask;
    const uint32_t other_warp = static_cast<uint32_t>(thread / kLanes != warp);
    const uint32_t lanes = reader[k] >> 30 & 1;
    state.is_plain &= static_cast<uint32_t>(written[k] < epoch) &
                      static_cast<uint32_t>(written[k] >= block.first_epoch);
    state.is_fresh &= static_cast<uint32_t>(read[k] < epoch);
    state.is_again &= static_cast<uint32_t>(read[k] == epoch);
    state.is_far &= many | other_warp;
    state.is_near &= (many ^ 1) & (other_warp ^ 1) &
                     (lanes | static_cast<uint32_t>(thread != first_thread + k / kPer));
  }
  return state;
}

// Lanes that read words in a row. False where they need a closer look.
template <uint32_t kPer>
bool read_row(LaneWarp& w, uint32_t granule, uint32_t first_thread) {
  const Block& block = *w.block;
  const SharedShadow& shadow = block.shadow;
  const RowState state = state_of_row<kPer>(block, granule, w.index, first_thread);
  if (!state.is_plain) return false;
  uint32_t *read = shadow.read_in + granule, *reader = shadow.reader + granule;
  uint32_t* quiet = shadow.quiet + granule;
  const uint32_t epoch = block.epoch, own = quiet_stamp(w);
  const uint32_t mine = (w.sync & kReaderSyncMask) << kSyncShift | first_thread;
  constexpr uint32_t kWords = kRun * kPer;
  if (state.is_fresh) {
    for (uint32_t k = 0; k < kWords; ++k) read[k] = epoch;
    for (uint32_t k = 0; k < kWords; ++k) reader[k] = mine + k / kPer;
  } else if (state.is_again && state.is_far) {
    for (uint32_t k = 0; k < kWords; ++k) reader[k] |= kManyWarps;
    for (uint32_t k = 0; k < kWords; ++k) quiet[k] = epoch;
  } else if (state.is_again && state.is_near) {
    for (uint32_t k = 0; k < kWords; ++k) reader[k] = (mine + k / kPer) | kManyLanes;
    for (uint32_t k = 0; k < kWords; ++k) quiet[k] = own;
  } else {
    return false;
  }
  return true;
}

template <uint32_t kPer>
MC_INLINE bool is_row(const LaneWarp& w, const Near& near, int first) {
  const uint32_t bytes = kPer << w.block->program->granule_shift;
  const uint32_t* at = near.at + first;
  if (!w.is_full() || at[1] - at[0] != bytes || at[kRun - 1] - at[0] != (kRun - 1) * bytes) {
    return false;
  }
  uint32_t gap = 0;
  for (uint32_t k = 0; k < kRun; ++k) gap |= at[k] - at[0] - k * bytes;
  return gap == 0;
}

// The lanes with the address of the lane before them.
MC_INLINE Mask repeated_lanes(const Near& near) {
#ifdef __AVX2__
  Mask mask = 0;
  __m256i before = _mm256_set1_epi32(-1);
  for (int k = 0; k < kLanes; k += 8) {
    const __m256i now = _mm256_load_si256(reinterpret_cast<const __m256i*>(near.at + k));
    const __m256i middle = _mm256_permute2x128_si256(before, now, 0x21);
    const __m256i same = _mm256_cmpeq_epi32(now, _mm256_alignr_epi8(now, middle, 12));
    const int bits = _mm256_movemask_ps(_mm256_castsi256_ps(same));
    mask |= Mask{static_cast<uint32_t>(bits)} << k;
    before = now;
  }
  return mask;
#else
  Mask mask = 0;
  for (int l = 1; l < kLanes; ++l) mask |= Mask{near.at[l] == near.at[l - 1]} << l;
  return mask;
#endif
}

template <uint32_t kPer>
void read_lanes(LaneWarp& w, const Step* s, const Near& near, Mask loud, Mask shared) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t sync = (w.sync & kReaderSyncMask) << kSyncShift, own = quiet_stamp(w);
  for (Mask left = loud; left != 0 && !block.stopped; left &= left - 1) {
    const int lane = lowest(left);
    const bool many = has(shared, lane);
    const int thread = w.thread(lane);
    const uint32_t mine = sync | static_cast<uint32_t>(thread) | (many ? kManyLanes : 0);
    const uint32_t first = near.at[lane] >> shift;
    for (uint32_t granule = first; granule < first + kPer; ++granule) {
      if (read_plain(block, granule, w.index, mine, own)) continue;
      read_shared(block, w, s, granule, thread, false);
      if (many) read_shared(block, w, s, granule, thread + 1, true);
    }
  }
}

// ---- Writes of shared memory.
// Lanes that write consecutive words, which no thread accessed since the last barrier.
bool write_fresh(LaneWarp& w, uint32_t per, uint32_t granule) {
  const SharedShadow& shadow = w.block->shadow;
  const uint32_t epoch = w.block->epoch, count = kLanes * per;
  const uint32_t *written = shadow.written_in + granule, *read = shadow.read_in + granule;
  uint32_t touched = 0;
  for (uint32_t k = 0; k < count; ++k) {
    touched |= static_cast<uint32_t>(written[k] == epoch) | static_cast<uint32_t>(read[k] >= epoch);
  }
  if (touched) return false;
  uint32_t* writer = shadow.writer + granule;
  const uint32_t first =
      (w.sync & kWriterSyncMask) << kSyncShift | static_cast<uint32_t>(w.thread(0));
  for (uint32_t k = 0; k < count; ++k) shadow.written_in[granule + k] = epoch;
  for (uint32_t k = 0; k < count; ++k) shadow.quiet[granule + k] = 0;
  if (per == 1) {
    for (uint32_t k = 0; k < kLanes; ++k) writer[k] = first + k;
  } else {
    for (uint32_t k = 0; k < count; ++k) writer[k] = first + k / per;
  }
  return true;
}

MC_INLINE bool write_lane_fresh(LaneWarp& w, uint32_t granule, uint32_t per, int thread) {
  const SharedShadow& shadow = w.block->shadow;
  const uint32_t epoch = w.block->epoch;
  uint32_t touched = 0;
  for (uint32_t k = granule; k < granule + per; ++k) {
    touched |= static_cast<uint32_t>(shadow.written_in[k] == epoch) |
               static_cast<uint32_t>(shadow.read_in[k] >= epoch);
  }
  if (touched) return false;
  const uint32_t mine = (w.sync & kWriterSyncMask) << kSyncShift | static_cast<uint32_t>(thread);
  for (uint32_t k = granule; k < granule + per; ++k) {
    shadow.written_in[k] = epoch;
    shadow.writer[k] = mine;
    shadow.quiet[k] = 0;
  }
  return true;
}

bool changes(const uint8_t* value, const uint8_t* memory, uint32_t bytes) {
  return memcmp(value, memory, bytes) != 0;
}

bool is_contiguous(LaneWarp& w, uint32_t bytes, const Near& near) {
  if (!w.is_full()) return false;
  uint32_t gap = 0;
  MC_LANES gap |= near.at[l] - near.at[0] - static_cast<uint32_t>(l) * bytes;
  return gap == 0;
}

// ---- Global memory.
// A word that no thread wrote in this launch. False if a thread did.
MC_INLINE bool write_fresh_granule(const Block& block, const LaneWarp& w, uint64_t granule,
                                   int thread) {
  if (block.global_written_in[granule] >= block.launch_epoch) return false;
  block.global_written_in[granule] = block.epoch;
  block.global_writer[granule] = (w.sync & kGlobalSyncMask) << kGlobalSyncShift |
                                 block.context << kContextShift | static_cast<uint32_t>(thread);
  return true;
}

bool write_fresh_global(LaneWarp& w, uint32_t per, uint64_t granule) {
  Block& block = *w.block;
  const uint32_t count = kLanes * per, epoch = block.epoch;
  if (!is_untouched(block, granule, count)) return false;
  uint32_t *written = block.global_written_in + granule, *writer = block.global_writer + granule;
  const uint32_t first = (w.sync & kGlobalSyncMask) << kGlobalSyncShift |
                         block.context << kContextShift | static_cast<uint32_t>(w.thread(0));
  for (uint32_t k = 0; k < count; ++k) written[k] = epoch;
  if (per == 1) {
    for (uint32_t k = 0; k < kLanes; ++k) writer[k] = first + k;
  } else {
    for (uint32_t k = 0; k < count; ++k) writer[k] = first + k / per;
  }
  return true;
}

}  // namespace

bool report_outside(LaneWarp& w, const Step* s, Access access, const Near& near) {
  const uint32_t bytes = w.block->shared_bytes;
  const bool is_empty = bytes < access.bytes;
  return report_outside_of<uint32_t>(w, s, access, near.at, Space::kShared,
                                     is_empty ? UINT32_MAX : 0,
                                     is_empty ? 0 : bytes - access.bytes);
}

// Lanes in several allocations, or outside of all.
bool resolve_each(LaneWarp& w, const Step* s, Access access, const Far& far) {
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    SiteRange range;
    const bool is_inside = find_allocation(*w.block, far.at[l], range) &&
                           far.at[l] + access.bytes <= range.end &&
                           (far.at[l] & (access.bytes - 1)) == 0;
    if (is_inside) continue;
    report_access(*w.block, w, s, access.is_write, w.thread(l), Space::kGlobal, far.at[l],
                  static_cast<int>(access.bytes));
    return false;
  }
  return true;
}

// Local memory and parameters: a window of bytes for each thread, or one for all.
bool resolve_window(LaneWarp& w, const Step* s, Access access, Space space, Far& far) {
  const Block& block = *w.block;
  const bool is_local = space == Space::kLocal;
  const uint64_t bytes = is_local ? block.local_stride : block.program->parameter_bytes;
  const uint64_t room = bytes >= access.bytes ? bytes - access.bytes : 0;
  const bool is_empty = bytes < access.bytes || (access.is_write && !is_local);
  if (is_empty || any_outside<uint64_t>(w, far.at, 0, room, access.bytes - 1)) {
    const uint64_t none = is_empty ? UINT64_MAX : 0;
    return report_outside_of<uint64_t>(w, s, access, far.at, space, none, is_empty ? 0 : room);
  }
  const uint8_t* base = is_local ? block.local : block.parameters;
  const uint64_t first = reinterpret_cast<uint64_t>(base);
  const uint64_t stride = is_local ? block.local_stride : 0;
  MC_LANES far.at[l] += first + stride * static_cast<uint64_t>(w.thread(l));
  far.is_contiguous = far.is_uniform = false;
  return true;
}

Space generic_space(LaneWarp& w, Operand64 operand, Mask& same) {
  alignas(32) uint64_t at[kLanes];
  add_offset(w, operand, at);
  auto window = [&](int lane) {
    const uint64_t number = at[lane] >> kWindowShift;
    const bool is_global =
        number < kParamWindow >> kWindowShift || number > kSharedWindow >> kWindowShift;
    return is_global ? 0 : number;
  };
  const uint64_t first = window(lowest(w.active));
  same = 0;
  for (int l = 0; l < kLanes; ++l) {
    if (has(w.active, l) && window(l) == first) same |= bit(l);
  }
  if (first == kSharedWindow >> kWindowShift) return Space::kShared;
  if (first == kLocalWindow >> kWindowShift) return Space::kLocal;
  return first == kParamWindow >> kWindowShift ? Space::kParam : Space::kGlobal;
}

template <uint32_t kPer>
void read_loud(LaneWarp& w, const Step* s, const Near& near, Mask loud) {
  const int shift = w.block->program->granule_shift;
  for (int first = 0; first < kLanes; first += kRun) {
    const Mask run = ((Mask{1} << kRun) - 1) << first;
    const bool is_in_row = (loud & run) != 0 && is_row<kPer>(w, near, first);
    if (is_in_row &&
        read_row<kPer>(w, near.at[first] >> shift, static_cast<uint32_t>(w.thread(first)))) {
      loud &= ~run;
    }
  }
  if (loud == 0) return;
  // A lane with the address of the one before it counts with that one.
  const Mask repeats = repeated_lanes(near) & w.active & (w.active << 1);
  read_lanes<kPer>(w, s, near, loud & ~repeats, repeats >> 1);
}

template void read_loud<1>(LaneWarp&, const Step*, const Near&, Mask);
template void read_loud<2>(LaneWarp&, const Step*, const Near&, Mask);
template void read_loud<4>(LaneWarp&, const Step*, const Near&, Mask);
template void read_loud<8>(LaneWarp&, const Step*, const Near&, Mask);
template void read_loud<16>(LaneWarp&, const Step*, const Near&, Mask);

void store_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                const uint8_t* values) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t per = granules(bytes, shift);
  const bool checks = block.checks_races;
  if (is_contiguous(w, bytes, near) && (!checks || write_fresh(w, per, near.at[0] >> shift))) {
    memcpy(block.shared + near.at[0], values, uint64_t{kLanes} * bytes);
    return;
  }
  const uint32_t part = bytes < 1U << shift ? bytes : 1U << shift;
  for (int l = 0; l < kLanes && !block.stopped; ++l) {
    if (!has(w.active, l)) continue;
    const uint8_t* value = values + static_cast<uint32_t>(l) * bytes;
    uint8_t* memory = block.shared + near.at[l];
    const uint32_t granule = near.at[l] >> shift;
    if (checks && !write_lane_fresh(w, granule, per, w.thread(l))) {
      for (uint32_t k = 0; k < per; ++k) {
        const bool is_new = changes(value + k * part, memory + k * part, part);
        write_shared(block, w, s, granule + k, w.thread(l), is_new);
      }
    }
    memcpy(memory, value, bytes);
  }
}

void check_read_each(LaneWarp& w, const Step* s, uint32_t per, const Far& far) {
  Block& block = *w.block;
  if (w.is_full() && per == 1 && !far.is_uniform) {
    uint32_t touched = 0;
    for (int l = 0; l < kLanes; ++l) {
      const uint32_t written = block.global_written_in[global_granule(block, far, l)];
      touched |= static_cast<uint32_t>(written >= block.launch_epoch);
    }
    if (touched == 0) return;
  }
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    const uint64_t granule = global_granule(block, far, l);
    for (uint32_t k = 0; k < per; ++k) {
      if (block.global_written_in[granule + k] < block.launch_epoch) continue;
      read_global(block, w, s, granule + k, w.thread(l));
    }
    if (far.is_uniform) return;
  }
}

void store_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, const uint8_t* values) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t per = granules(bytes, shift);
  const bool checks = far.space == Space::kGlobal && block.checks_races && !(s->flags & kStrong);
  const bool is_row = w.is_full() && far.is_contiguous;
  if (is_row && (!checks || write_fresh_global(w, per, global_granule(block, far, 0)))) {
    memcpy(far.host(0), values, uint64_t{kLanes} * bytes);
    return;
  }
  const uint32_t part = bytes < 1U << shift ? bytes : 1U << shift;
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    const uint8_t* value = values + static_cast<uint32_t>(l) * bytes;
    const uint64_t first = checks ? global_granule(block, far, l) : 0;
    for (uint32_t k = 0; checks && k < per; ++k) {
      if (write_fresh_granule(block, w, first + k, w.thread(l))) continue;
      const bool is_new = changes(value + k * part, far.host(l) + k * part, part);
      write_global(block, w, s, first + k, w.thread(l), is_new);
    }
    memcpy(far.host(l), value, bytes);
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
