// SPDX-License-Identifier: Apache-2.0
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// ---- Addresses.

// The number of bytes from an address on at which an access may begin; 0 if none fits.
template <class T>
struct Room {
  T begin = 0, bytes = 0;

  Room(T end, Access access)
      : begin(end < access.bytes ? ~T{0} : 0), bytes(end < access.bytes ? 0 : end - access.bytes) {}
};

// Reports the first lane that is out of bounds; false if there is one.
template <class T>
bool check_inside(LaneWarp& w, const Step* s, Access access, const T* at, Space space, T end) {
  const Room<T> room(end, access);
  if (!any_outside<T>(w, at, room.begin, room.bytes, access.bytes - 1)) return true;
  Mask left = w.active;
  auto is_bad = [&](T one) {
    return one - room.begin > room.bytes || (one & (access.bytes - 1)) != 0;
  };
  while (!is_bad(at[lowest(left)])) left &= left - 1;
  report_access(*w.block, w, s, access.is_write, w.thread(lowest(left)), space, at[lowest(left)],
                static_cast<int>(access.bytes));
  return false;
}

bool is_inside(LaneWarp& w, const SiteRange& range, uint32_t bytes, const Far& far) {
  if (range.end < range.begin + bytes) return false;
  return !any_outside<uint64_t>(w, far.at, range.begin, range.end - range.begin - bytes, bytes - 1);
}

// Resolves lanes that are in several allocations, or in none.
bool resolve_each(LaneWarp& w, const Step* s, Access access, const Far& far) {
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    SiteRange range;
    const bool is_inside = find_allocation(*w.block, far.at[l], access.is_write, range) &&
                           far.at[l] + access.bytes <= range.end &&
                           (far.at[l] & (access.bytes - 1)) == 0;
    if (is_inside) continue;
    report_access(*w.block, w, s, access.is_write, w.thread(l), Space::kGlobal, far.at[l],
                  static_cast<int>(access.bytes));
    return false;
  }
  return true;
}

// ---- Shared memory.

// A read of a word that was written before the last barrier; false if it needs the full check.
MC_INLINE bool read_plain(const LaneWarp& w, uint32_t granule, uint32_t mine, bool many_lanes) {
  const Block& block = *w.block;
  const SharedShadow& shadow = block.shared_shadow;
  const uint32_t written = shadow.written[granule], read = shadow.read[granule];
  if (written >= block.since || written < block.begin) return false;
  uint32_t& reader = shadow.reader[granule];
  if (read >= block.since && (reader & kManyWarps || (reader & kThreadMask) / kLanes != w.index)) {
    reader |= kManyWarps;
    shadow.quiet[granule] = block.since;
    return true;
  }
  const bool is_first = read < w.since;
  many_lanes |= !is_first && reader != mine;
  shadow.read[granule] = w.stamp;
  reader = mine | (many_lanes ? kManyLanes : 0);
  if (many_lanes) shadow.quiet[granule] = w.since;
  return true;
}

// Calls f with a number of granules, a power of two up to 16, as a constant.
template <class F>
MC_INLINE void by_count(uint32_t per, F f) {
  if (per == 1) return f(std::integral_constant<uint32_t, 1>());
  if (per == 2) return f(std::integral_constant<uint32_t, 2>());
  if (per == 4) return f(std::integral_constant<uint32_t, 4>());
  per == 8 ? f(std::integral_constant<uint32_t, 8>()) : f(std::integral_constant<uint32_t, 16>());
}

// Reads by a thread, and by a second thread of its warp if that number is not negative.
void read_words(LaneWarp& w, const Step* s, uint32_t granule, uint32_t per, int thread, int other) {
  for (const uint32_t end = granule + per; granule < end && !w.block->stopped; ++granule) {
    if (read_plain(w, granule, static_cast<uint32_t>(thread), other >= 0)) continue;
    read_shared(*w.block, w, s, granule, thread);
    if (other >= 0) read_shared(*w.block, w, s, granule, other);
  }
}

// Reads of a row of words that were all written before the last barrier and since then read, if at
// all, only by other warps. False if a word is different.
MC_INLINE bool read_row(LaneWarp& w, uint32_t granule, uint32_t count, int shift, int thread,
                        bool repeats) {
  const Block& block = *w.block;
  const SharedShadow& shadow = block.shared_shadow;
  const uint32_t *written = shadow.written + granule, since = w.stamp;
  uint32_t *read = shadow.read + granule, *reader = shadow.reader + granule;
  uint32_t* quiet = shadow.quiet + granule;
  uint32_t closer = 0, is_read = 0, is_near = 0;
  for (uint32_t k = 0; k < count; ++k) {
    closer |= static_cast<uint32_t>(written[k] >= block.since) |
              static_cast<uint32_t>(written[k] < block.begin);
    const uint32_t again = static_cast<uint32_t>(read[k] >= block.since);
    const uint32_t is_own = static_cast<uint32_t>((reader[k] & ~kManyLanes) / kLanes == w.index);
    is_read |= again;
    is_near |= (again ^ 1) | is_own;
  }
  if (closer != 0) return false;
  if (is_near == 0) {
    for (uint32_t k = 0; k < count; ++k) reader[k] |= kManyWarps;
    for (uint32_t k = 0; k < count; ++k) quiet[k] = block.since;
    return true;
  }
  if (is_read != 0) return false;
  const uint32_t mine = static_cast<uint32_t>(thread) | (repeats ? kManyLanes : 0);
  for (uint32_t k = 0; k < count; ++k) read[k] = since;
  for (uint32_t k = 0; k < count; ++k) reader[k] = mine + (k >> shift);
  if (!repeats) return true;
  for (uint32_t k = 0; k < count; ++k) quiet[k] = w.since;
  return true;
}

// Writes of a row of words that no thread touched since the last barrier; false if one did.
MC_INLINE bool write_row(LaneWarp& w, uint32_t granule, uint32_t count, int shift, int thread) {
  const SharedShadow& shadow = w.block->shared_shadow;
  const uint32_t since = w.block->since, now = w.stamp;
  uint32_t *written = shadow.written + granule, *quiet = shadow.quiet + granule;
  const uint32_t* read = shadow.read + granule;
  uint32_t touched = 0;
  for (uint32_t k = 0; k < count; ++k) {
    touched |= static_cast<uint32_t>(written[k] >= since) | static_cast<uint32_t>(read[k] >= since);
  }
  if (touched) return false;
  uint32_t* writer = shadow.writer + granule;
  for (uint32_t k = 0; k < count; ++k) written[k] = now;
  for (uint32_t k = 0; k < count; ++k) quiet[k] = 0;
  for (uint32_t k = 0; k < count; ++k) writer[k] = static_cast<uint32_t>(thread) + (k >> shift);
  return true;
}

// ---- Global memory.

// Writes of a row that no other thread touched in this launch; false if one did.
MC_INLINE bool write_global_row(LaneWarp& w, uint64_t address, uint32_t bytes, int lane,
                                int lanes) {
  Block& block = *w.block;
  const uint32_t per = granules(bytes, block.program->granule_shift);
  const uint64_t granule = global_granule(block, address);
  const uint32_t count = per * static_cast<uint32_t>(lanes);
  uint32_t touched = 0, read_here = 0;
  each_line(w, granule, count, shift_of(per), lane, [&](uint64_t index, const Touch& touch) {
    const Line& line = block.global_shadow.lines[index];
    const bool is_own = line.written.who == touch.who && line.written.mask == touch.mask &&
                        line.written.shift == touch.shift;
    if (line.written.since >= block.launch_since && !is_own)
      touched |= line.written.mask & touch.mask;
    if (line.read.since < block.launch_since) return;
    const bool is_own_read = (line.read.who ^ touch.who) >> kBlockShift == 0;
    (is_own_read ? read_here : touched) |= line.read.mask & touch.mask;
  });
  if (touched != 0) return false;
  block.writes_what_it_read |= read_here != 0;
  each_line(w, granule, count, shift_of(per), lane, [&](uint64_t index, const Touch& touch) {
    Touch& written = block.global_shadow.lines[index].written;
    if (written.since < block.launch_since || written.mask == touch.mask) {
      written = touch;
    } else {
      add_writes(block.global_shadow, index, touch);
    }
  });
  return true;
}

void write_words(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, int lane,
                 const uint8_t* value) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t part = bytes < 1U << shift ? bytes : 1U << shift;
  const uint64_t first = global_granule(block, far.at[lane]);
  for (uint32_t k = 0; k < granules(bytes, shift); ++k) {
    const bool changes = memcmp(value + k * part, far.host(lane) + k * part, part) != 0;
    write_global(block, w, s, first + k, w.thread(lane), changes);
  }
}

}  // namespace

bool report_outside(LaneWarp& w, const Step* s, Access access, const Near& near) {
  return check_inside<uint32_t>(w, s, access, near.at, Space::kShared, w.block->shared_bytes);
}

bool resolve_global(LaneWarp& w, const Step* s, Access access, Far& far) {
  Block& block = *w.block;
  far.base = reinterpret_cast<uint64_t>(block.global);
  SiteRange& range = block.sites[s->site];
  far.has_unwritten = range.has_unwritten;
  if (is_inside(w, range, access.bytes, far)) return true;
  SiteRange found;
  if (find_allocation(block, far.at[lowest(w.active)], access.is_write, found)) {
    range = found;
    far.has_unwritten = range.has_unwritten;
    if (is_inside(w, range, access.bytes, far)) return true;
  }
  far.has_unwritten = block.launch->unwritten_reads != nullptr;
  return resolve_each(w, s, access, far);
}

// Local memory and parameters: a window of bytes for each thread, or one for all.
bool resolve_window(LaneWarp& w, const Step* s, Access access, Space space, Far& far) {
  const Block& block = *w.block;
  const bool is_local = space == Space::kLocal;
  const uint64_t window = is_local ? kLocalWindow : kParamWindow;
  MC_LANES far.at[l] = far.at[l] >= window ? far.at[l] - window : far.at[l];
  const uint64_t bytes = is_local ? block.local_stride : block.program->parameter_bytes;
  const uint64_t end = access.is_write && !is_local ? 0 : bytes;
  if (!check_inside<uint64_t>(w, s, access, far.at, space, end)) return false;
  const uint8_t* base = is_local ? block.local : block.parameters;
  const uint64_t first = reinterpret_cast<uint64_t>(base);
  const uint64_t stride = is_local ? block.local_stride : 0;
  MC_LANES far.at[l] += first + stride * static_cast<uint64_t>(w.thread(l));
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
MC_INLINE void read_each(LaneWarp& w, const Step* s, const Near& near, Mask lanes, int shift) {
  for (; lanes != 0 && !w.block->stopped; lanes &= lanes - 1) {
    const int lane = lowest(lanes);
    const uint32_t granule = near.at[lane] >> shift;
    const int thread = w.thread(lane);
    const bool is_plain = kPer == 1 ? read_plain(w, granule, static_cast<uint32_t>(thread), false)
                                    : read_row(w, granule, kPer, shift_of(kPer), thread, false);
    if (!is_plain) read_words(w, s, granule, kPer, thread, -1);
  }
}

void read_near_strongly(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  for (Mask left = w.active; left != 0 && !block.stopped; left &= left - 1) {
    const int l = lowest(left);
    for (uint32_t k = 0; k < granules(bytes, shift); ++k) {
      touch_shared_strongly(block, w, s, (near.at[l] >> shift) + k, w.thread(l), Strong::kRead,
                            false, false);
    }
  }
}

void read_lanes(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near, Mask lanes) {
  const int shift = w.block->program->granule_shift;
  by_count(granules(bytes, shift),
           [&](auto per) { read_each<decltype(per)::value>(w, s, near, lanes, shift); });
}

void read_run(LaneWarp& w, const Step* s, uint32_t bytes, Run<uint32_t> run, int first_lane,
              bool repeats) {
  const int shift = w.block->program->granule_shift, thread = w.thread(first_lane);
  const uint32_t per = granules(bytes, shift), granule = run.base >> shift;
  if (!run.is_row) return read_words(w, s, granule, per, thread, thread + 1);
  if (read_row(w, granule, kRun * per, shift_of(per), thread, repeats)) return;
  for (int k = 0; k < kRun && !w.block->stopped; ++k) {
    read_words(w, s, granule + static_cast<uint32_t>(k) * per, per, thread + k,
               repeats ? thread + k + kRun : -1);
  }
}

template <uint32_t kPer>
MC_INLINE void store_each(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                          const uint8_t* values) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t part = bytes < 1U << shift ? bytes : 1U << shift;
  for (Mask left = w.active; left != 0 && !block.stopped; left &= left - 1) {
    const int l = lowest(left);
    const uint8_t* value = values + static_cast<uint32_t>(l) * bytes;
    uint8_t* memory = block.shared + near.at[l];
    const uint32_t granule = near.at[l] >> shift;
    const bool is_strong = (s->flags & kStrong) != 0;
    const bool is_fresh = !block.checks_races ||
                          (!is_strong && write_row(w, granule, kPer, shift_of(kPer), w.thread(l)));
    for (uint32_t k = 0; k < kPer && !is_fresh; ++k) {
      const bool changes = memcmp(value + k * part, memory + k * part, part) != 0;
      if (is_strong) {
        touch_shared_strongly(block, w, s, granule + k, w.thread(l), Strong::kWrite, changes,
                              false);
      } else {
        write_shared(block, w, s, granule + k, w.thread(l), changes);
      }
    }
    memcpy(memory, value, bytes);
  }
}

void store_near(LaneWarp& w, const Step* s, uint32_t bytes, const Near& near,
                const uint8_t* values) {
  Block& block = *w.block;
  const int shift = block.program->granule_shift;
  const uint32_t per = granules(bytes, shift);
  Run<uint32_t> runs[kRuns];
  if (w.is_full() && !(s->flags & kStrong) && find_runs(near.at, bytes, runs) &&
      is_one_row(runs, bytes) &&
      (!block.checks_races ||
       write_row(w, near.at[0] >> shift, kLanes * per, shift_of(per), w.thread(0)))) {
    memcpy(block.shared + near.at[0], values, uint64_t{kLanes} * bytes);
    return;
  }
  by_count(per, [&](auto count) {
    constexpr uint32_t kPer = decltype(count)::value;
    // Most accesses have granules of a word, so their number of bytes is a constant.
    if (bytes == 4 * kPer) return store_each<kPer>(w, s, 4 * kPer, near, values);
    store_each<kPer>(w, s, bytes, near, values);
  });
}

void note_unwritten_runs(LaneWarp& w, const Step* s, uint32_t bytes,
                         const Run<uint64_t> (&runs)[kRuns]) {
  for (int r = 0; r < kRuns; ++r) {
    note_unwritten(*w.block, w, s, runs[r].base, bytes, w.thread(r * kRun),
                   runs[r].is_row ? kRun : 1);
  }
}

void note_unwritten_lanes(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far) {
  for (Mask left = w.active; left != 0; left &= left - 1) {
    const int l = lowest(left);
    note_unwritten(*w.block, w, s, far.at[l], bytes, w.thread(l), 1);
  }
}

void check_read_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far) {
  if (far.space != Space::kGlobal || !w.block->checks_races) return;
  if (far.has_unwritten) note_unwritten_lanes(w, s, bytes, far);
  const bool is_strong = (s->flags & kStrong) != 0;
  for (Mask left = w.active; left != 0;) {
    const int l = lowest(left);
    // Lanes with consecutive bytes are checked together, and lanes with equal addresses once.
    int lanes = 1, same = 1;
    while (l + lanes < kLanes && has(left, l + lanes) && !is_strong &&
           far.at[l + lanes] == far.at[l] + static_cast<uint64_t>(lanes) * bytes) {
      ++lanes;
    }
    while (lanes == 1 && l + same < kLanes && has(left, l + same) && !w.block->reads_by_words &&
           far.at[l + same] == far.at[l]) {
      ++same;
    }
    const int done = lanes > same ? lanes : same;
    left &= done == kLanes ? 0 : ~((bit(done) - 1) << l);
    if (is_strong) {
      touch_far(w, s, bytes, far, l, Strong::kRead, false);
    } else {
      check_read_row(w, s, far.at[l], bytes, l, lanes);
    }
  }
}

void touch_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, int lane, Strong kind,
               bool changes) {
  Block& block = *w.block;
  const uint64_t first = global_granule(block, far.at[lane]);
  for (uint32_t k = 0; k < granules(bytes, block.program->granule_shift); ++k) {
    touch_global_strongly(block, w, s, first + k, w.thread(lane), kind, changes);
  }
}

bool store_row(LaneWarp& w, uint32_t bytes, uint64_t address, const uint8_t* values) {
  Block& block = *w.block;
  if (block.checks_races && !write_global_row(w, address, bytes, 0, kLanes)) return false;
  if (block.saves) save_bytes(block, address, uint64_t{kLanes} * bytes);
  memcpy(block.global + address, values, uint64_t{kLanes} * bytes);
  return true;
}

void store_far(LaneWarp& w, const Step* s, uint32_t bytes, const Far& far, const uint8_t* values) {
  Block& block = *w.block;
  const bool is_global = far.space == Space::kGlobal, is_strong = (s->flags & kStrong) != 0;
  const bool checks = is_global && block.checks_races;
  if (checks && is_strong) w.stamp = ++*block.now;
  for (Mask left = w.active; left != 0; left &= left - 1) {
    const int l = lowest(left);
    const uint8_t* value = values + static_cast<uint32_t>(l) * bytes;
    if (is_global && block.saves) save_bytes(block, far.at[l], bytes);
    if (checks && is_strong) {
      touch_far(w, s, bytes, far, l, Strong::kWrite, memcmp(value, far.host(l), bytes) != 0);
    } else if (checks && !write_global_row(w, far.at[l], bytes, l, 1)) {
      write_words(w, s, bytes, far, l, value);
    }
    memcpy(far.host(l), value, bytes);
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
