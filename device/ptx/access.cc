// SPDX-License-Identifier: Apache-2.0
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

MC_INLINE uint32_t quiet_stamp(const LaneWarp& w) {
  return 1U << 31 | (w.block->epoch & 0xFFFF) << 15 | w.index << 10 | (w.sync & 0x3FF);
}

// ---- Addresses.
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

template <class T>
bool report_outside(LaneWarp& w, const Step* s, Access access, const T* at, Space space, T begin,
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

void find_patterns(LaneWarp& w, uint32_t bytes, Far& far) {
  const uint64_t first = far.at[lowest(w.active)];
  uint64_t gap = 0, difference = 0;
  if (w.is_full()) {
    MC_LANES {
      gap |= far.at[l] - first - static_cast<uint64_t>(l) * bytes;
      difference |= far.at[l] ^ first;
    }
  } else {
    gap = 1;
    MC_LANES difference |= w.chosen[l] ? far.at[l] ^ first : 0;
  }
  far.is_contiguous = gap == 0;
  far.is_uniform = difference == 0;
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

MC_INLINE bool is_inside(LaneWarp& w, const SiteRange& range, uint32_t bytes, const Far& far) {
  if (range.end < range.begin + bytes) return false;
  const uint64_t room = range.end - range.begin - bytes, align = bytes - 1;
  const uint64_t first = far.at[lowest(w.active)];
  if (far.is_uniform) return first - range.begin <= room && (first & align) == 0;
  if (far.is_contiguous) {
    const uint64_t end = first + uint64_t{kLanes} * bytes;
    return first >= range.begin && end <= range.end && (first & align) == 0;
  }
  return !any_outside<uint64_t>(w, far.at, range.begin, room, align);
}

bool resolve_global(LaneWarp& w, const Step* s, Access access, Far& far) {
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
  const uint64_t base = reinterpret_cast<uint64_t>(block.global);
  MC_LANES far.at[l] += base;
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
    return report_outside<uint64_t>(w, s, access, far.at, space, none, is_empty ? 0 : room);
  }
  const uint8_t* base = is_local ? block.local : block.parameters;
  const uint64_t first = reinterpret_cast<uint64_t>(base);
  const uint64_t stride = is_local ? block.local_stride : 0;
  MC_LANES far.at[l] += first + stride * static_cast<uint64_t>(w.thread(l));
  far.is_contiguous = far.is_uniform = false;
  return true;
}

// ---- Reads of shared memory.
MC_INLINE bool all_quiet_words(const uint32_t* quiet, const uint32_t* at, int shift, uint32_t many,
                               uint32_t own) {
  uint32_t loud = 0;
  MC_LANES {
    const uint32_t stamp = quiet[at[l] >> shift];
    loud |= static_cast<uint32_t>(stamp != many) & static_cast<uint32_t>(stamp != own);
  }
  return loud == 0;
}

MC_INLINE bool all_quiet(const uint32_t* quiet, uint32_t per, uint32_t many, uint32_t own) {
  uint32_t loud = 0;
  for (uint32_t k = 0; k < per; ++k) {
    loud |= static_cast<uint32_t>(quiet[k] != many) & static_cast<uint32_t>(quiet[k] != own);
  }
  return loud == 0;
}

// The first read of words since a barrier, which were written before it.
MC_INLINE bool read_fresh(const Block& block, const LaneWarp& w, uint32_t granule, uint32_t per,
                          int thread, bool many_lanes) {
  const SharedShadow& shadow = block.shadow;
  uint32_t plain = 1;
  for (uint32_t k = granule; k < granule + per; ++k) {
    const uint32_t written = shadow.written_in[k];
    plain &= static_cast<uint32_t>(written < block.epoch && written >= block.first_epoch &&
                                   shadow.read_in[k] < block.epoch);
  }
  if (!plain) return false;
  const uint32_t mine = (w.sync & kReaderSyncMask) << kSyncShift | static_cast<uint32_t>(thread) |
                        (many_lanes ? kManyLanes : 0);
  for (uint32_t k = granule; k < granule + per; ++k) {
    shadow.read_in[k] = block.epoch;
    shadow.reader[k] = mine;
    if (many_lanes) shadow.quiet[k] = quiet_stamp(w);
  }
  return true;
}

// Words that this warp or another one read in this epoch, all in the same way.
MC_INLINE bool read_again(const Block& block, const LaneWarp& w, uint32_t granule, uint32_t per,
                          int thread, bool many_lanes) {
  const SharedShadow& shadow = block.shadow;
  const uint32_t reader = shadow.reader[granule];
  uint32_t same = 1;
  for (uint32_t k = granule; k < granule + per; ++k) {
    const uint32_t written = shadow.written_in[k];
    same &= static_cast<uint32_t>(written < block.epoch && written >= block.first_epoch &&
                                  shadow.read_in[k] == block.epoch && shadow.reader[k] == reader);
  }
  if (!same) return false;
  const uint32_t warp = (reader & kThreadMask) / kLanes;
  const uint32_t mine = (w.sync & kReaderSyncMask) << kSyncShift | static_cast<uint32_t>(thread);
  const bool is_own = !(reader & kManyLanes) && (reader & kThreadMask) == (mine & kThreadMask);
  uint32_t now = is_own && !many_lanes ? mine : mine | kManyLanes;
  uint32_t stamp = is_own && !many_lanes ? shadow.quiet[granule] : quiet_stamp(w);
  if (reader & kManyWarps || warp != w.index) {
    now = reader | kManyWarps;
    stamp = block.epoch;
  }
  for (uint32_t k = granule; k < granule + per; ++k) {
    shadow.reader[k] = now;
    shadow.quiet[k] = stamp;
  }
  return true;
}

// A lane's read, and that of the lane behind it if it has the same address.
MC_INLINE void read_lane(LaneWarp& w, const Step* s, uint32_t granule, uint32_t per, int lane,
                         bool many_lanes) {
  Block& block = *w.block;
  const uint32_t own = quiet_stamp(w);
  if (all_quiet(block.shadow.quiet + granule, per, block.epoch, own)) return;
  const int thread = w.thread(lane);
  if (read_fresh(block, w, granule, per, thread, many_lanes)) return;
  if (read_again(block, w, granule, per, thread, many_lanes)) return;
  for (uint32_t k = granule; k < granule + per; ++k) {
    read_shared(block, w, s, k, thread, false);
    if (many_lanes) read_shared(block, w, s, k, thread + 1, true);
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

MC_INLINE uint32_t granules(uint32_t bytes, int shift) {
  const uint32_t per = bytes >> shift;
  return per == 0 ? 1 : per;
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

bool resolve_near(LaneWarp& w, const Step* s, Access access, Operand64 operand, Near& near) {
  add_offset(w, operand, near.at);
  const uint32_t bytes = w.block->shared_bytes;
  const uint32_t room = bytes >= access.bytes ? bytes - access.bytes : 0;
  const bool is_empty = bytes < access.bytes;
  if (!is_empty && !any_outside<uint32_t>(w, near.at, 0, room, access.bytes - 1)) return true;
  const uint32_t begin = is_empty ? UINT32_MAX : 0;
  return report_outside<uint32_t>(w, s, access, near.at, Space::kShared, begin, room);
}

bool resolve_far(LaneWarp& w, const Step* s, Access access, Operand64 operand, Space space,
                 Far& far) {
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

void check_read_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near) {
  Block& block = *w.block;
  if (!block.checks_races) return;
  const int shift = block.program->granule_shift;
  const uint32_t per = granules(bytes, shift), own = quiet_stamp(w);
  const uint32_t* quiet = block.shadow.quiet;
  if (w.is_full() && per == 1 && all_quiet_words(quiet, near.at, shift, block.epoch, own)) return;
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    const int first = l;
    while (l + 1 < kLanes && near.at[l + 1] == near.at[first] && has(w.active, l + 1)) ++l;
    read_lane(w, s, near.at[first] >> shift, per, first, l > first);
  }
}

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
  for (int l = 0; l < kLanes; ++l) {
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
