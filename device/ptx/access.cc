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

template <uint32_t kPer>
void read_lanes(LaneWarp& w, const Step* s, const Near& near, int shift, Mask loud, Mask repeats) {
  Block& block = *w.block;
  const uint32_t sync = (w.sync & kReaderSyncMask) << kSyncShift, own = quiet_stamp(w);
  const Mask shared = repeats >> 1;
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
// Lanes that write words one behind the other, which nobody touched since the last barrier.
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
uint64_t global_granule(const Block& block, const Far& far, int lane) {
  const uint64_t device = far.at[lane] - reinterpret_cast<uint64_t>(block.global);
  return (device - kGlobalBase) >> block.program->granule_shift;
}

bool untouched(const Block& block, uint64_t granule, uint32_t count) {
  const uint32_t *written = block.global_written_in + granule, launch = block.launch_epoch;
  uint32_t touched = 0;
  for (uint32_t k = 0; k < count; ++k) touched |= static_cast<uint32_t>(written[k] >= launch);
  return touched == 0;
}

bool write_fresh_global(LaneWarp& w, uint32_t per, uint64_t granule) {
  Block& block = *w.block;
  const uint32_t count = kLanes * per, epoch = block.epoch;
  if (!untouched(block, granule, count)) return false;
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
  alignas(32) int32_t same[kLanes];
  same[0] = 0;
  for (int l = 1; l < kLanes; ++l) same[l] = -static_cast<int32_t>(near.at[l] == near.at[l - 1]);
  const Mask repeats = mask_of(same) & w.active & (w.active << 1);
  read_lanes<kPer>(w, s, near, w.block->program->granule_shift, loud & ~repeats, repeats);
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

void check_read_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far) {
  Block& block = *w.block;
  if (far.space != Space::kGlobal || !block.checks_races || (s->flags & kStrong)) return;
  const uint32_t per = granules(bytes, block.program->granule_shift);
  if (w.is_full() && far.is_contiguous &&
      untouched(block, global_granule(block, far, 0), kLanes * per)) {
    return;
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
    for (uint32_t k = 0; checks && k < per; ++k) {
      const bool is_new = changes(value + k * part, far.host(l) + k * part, part);
      write_global(block, w, s, global_granule(block, far, l) + k, w.thread(l), is_new);
    }
    memcpy(far.host(l), value, bytes);
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
