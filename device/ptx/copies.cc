// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous copies, and loads of matrices from shared memory.
//
// A copy takes effect when the kernel waits for its group, which is the latest time that a GPU
// permits: a kernel that reads before it waits reads the old bytes. Its writes of shared memory
// count from then on.
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

constexpr size_t kPendingMax = 1 << 12;

// A part of each active lane's bytes from global memory; each lane has `bytes` bytes in total.
struct Piece {
  uint32_t at, size;
};

bool fetch_piece(LaneWarp& w, const Step* s, uint32_t bytes, Piece piece, PendingCopy& copy) {
  Far far;
  const int64_t offset = static_cast<int64_t>(w.at<uint64_t>(s->b)[0]) + piece.at;
  const Operand64 from{s->a, offset, (s->flags & kFromWide) != 0};
  if (!resolve_far(w, s, {piece.size, false}, from, Space::kGlobal, far)) return false;
  check_read_far(w, s, piece.size, far);
  for (int l = 0; l < kLanes; ++l) {
    if (!has(w.active, l)) continue;
    memcpy(copy.values + static_cast<uint32_t>(l) * bytes + piece.at, far.host(l), piece.size);
    if (piece.at == 0) copy.from[l] = far.at[l];
    copy.sizes[l] = piece.at + piece.size;
  }
  return true;
}

// The lanes' bytes from global memory, read when the copy is issued. A lane may read fewer bytes
// than the copy has; these are read in pieces whose size is a power of two.
bool fetch(LaneWarp& w, const Step* s, uint32_t bytes, PendingCopy& copy) {
  if (s->e == 0) return fetch_piece(w, s, bytes, {0, bytes}, copy);
  const uint32_t* sizes = w.at<uint32_t>(s->e);
  const Mask all = w.active;
  bool is_inside = true;
  for (Mask left = all; is_inside && left != 0;) {
    const uint32_t given = sizes[lowest(left)], size = given > bytes ? bytes : given;
    Mask alike = 0;
    for (int l = 0; l < kLanes; ++l) {
      if (has(left, l) && sizes[l] == given) alike |= bit(l);
    }
    left &= ~alike;
    w.set(alike);
    const uint32_t piece = size & (~size + 1);
    for (uint32_t at = 0; is_inside && at < size; at += piece) {
      is_inside = fetch_piece(w, s, bytes, {at, piece}, copy);
    }
  }
  w.set(all);
  return is_inside;
}

// True if the launch's limit permits one more pending copy.
bool has_room(LaneWarp& w) {
  const size_t size = w.pending.size(), more = size < 16 ? 16 : size;
  if (size < w.pending.capacity()) return true;
  if (!take_bytes(*w.block, more * sizeof(PendingCopy))) return false;
  w.pending.reserve(size + more);
  return true;
}

const Step* copy_async(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  PendingCopy copy;
  copy.step = s;
  copy.lanes = w.active;
  memset(copy.values, 0, sizeof copy.values);
  const Operand64 to{s->d, s->immediate, (s->flags & kWideAddress) != 0};
  if (!resolve_near(w, s, {s->c, true}, to, copy.near)) return stop_warp(w);
  if (!fetch(w, s, s->c, copy)) return stop_warp(w);
  if (w.pending.size() >= kPendingMax || !has_room(w)) {
    report(*w.block, w, s, FindingKind::kStackLimit, w.thread(lowest(w.active)),
           "too many copies are pending without a wait");
    return stop_warp(w);
  }
  w.pending.push_back(copy);
  return s + 1;
}

// Copies of a lane belong to the group that the lane commits next.
const Step* commit(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  for (PendingCopy& copy : w.pending) {
    if (copy.group == 0 && (copy.lanes & ~w.active) == 0) copy.group = w.next_group;
  }
  ++w.next_group;
  return s + 1;
}

// Checks that no thread wrote the source, since a copy may read it until the wait.
void check_source(LaneWarp& w, const PendingCopy& copy) {
  for (Mask left = w.active; left != 0; left &= left - 1) {
    const int l = lowest(left);
    const uint8_t* values = copy.values + static_cast<uint32_t>(l) * copy.step->c;
    const uint8_t* source = w.block->global + copy.from[l];
    if (copy.sizes[l] == 0 || memcmp(values, source, copy.sizes[l]) == 0) continue;
    return report_global(*w.block, w, copy.step, copy.from[l], w.thread(l), w.block->number, -1,
                         "the source of a copy is written before the copy is waited for");
  }
}

void finish(LaneWarp& w, PendingCopy& copy, Mask lanes) {
  const Mask all = w.active;
  w.set(copy.lanes & lanes);
  if (w.block->checks_races) check_source(w, copy);
  store_near(w, copy.step, copy.step->c, copy.near, copy.values);
  w.set(all);
}

// wait_group n: all but the newest n groups are done. wait_all: an immediate of -1.
const Step* wait_copies(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const int64_t newest = int64_t{w.next_group} - 1 - s->immediate;
  const bool waits_all = s->immediate < 0;
  size_t kept = 0;
  for (size_t k = 0; k < w.pending.size(); ++k) {
    PendingCopy& copy = w.pending[k];
    const bool is_due = waits_all || (copy.group != 0 && copy.group <= newest);
    const Mask due = is_due ? copy.lanes & w.active : 0;
    if (due != 0) finish(w, copy, due);
    copy.lanes &= ~due;
    if (copy.lanes == 0) continue;
    if (kept != k) w.pending[kept] = copy;
    ++kept;
  }
  w.pending.resize(kept);
  return w.block->stopped ? stop_warp(w) : s + 1;
}

// Rows of 16 bytes, whose addresses lanes 8k to 8k + 7 give for matrix k.
template <bool kTransposed>
const Step* load_matrix(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const int count = static_cast<int>(s->c);
  const Mask all = w.active;
  const Mask rows = count == 4 ? Mask{0xFFFFFFFF} : bit(8 * count) - 1;
  if (all != kAllLanes) {
    report(*w.block, w, s, FindingKind::kShuffleSource, w.thread(lowest(all)),
           "lanes of the warp are missing");
    return w.block->stopped ? stop_warp(w) : s + 1;  // Addresses of missing lanes mean nothing.
  }
  w.set(rows);
  Near near;
  const Operand64 from = address_operand(s);
  if (!resolve_near(w, s, {16, false}, from, near)) return stop_warp(w);
  check_read_near(w, s, 16, near);
  w.set(all);
  if (w.block->stopped) return stop_warp(w);
  for (int k = 0; k < count; ++k) {
    uint16_t* d = w.at<uint16_t>(s->list[k]);
    const uint16_t* row[8];
    for (int r = 0; r < 8; ++r) {
      row[r] = reinterpret_cast<const uint16_t*>(w.block->shared + near.at[8 * k + r]);
    }
    for (int l = 0; l < 32; ++l) {
      const int g = l / 4, t = l % 4 * 2;
      d[2 * l] = kTransposed ? row[t][g] : row[g][t];
      d[2 * l + 1] = kTransposed ? row[t + 1][g] : row[g][t + 1];
    }
  }
  return s + 1;
}

// The inverse of load_matrix.
template <bool kTransposed>
const Step* store_matrix(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const int count = static_cast<int>(s->c);
  const Mask all = w.active;
  if (all != kAllLanes) {
    report(*w.block, w, s, FindingKind::kShuffleSource, w.thread(lowest(all)),
           "lanes of the warp are missing");
    return w.block->stopped ? stop_warp(w) : s + 1;  // Addresses of missing lanes mean nothing.
  }
  alignas(32) uint16_t rows[kLanes][8];
  for (int k = 0; k < count; ++k) {
    const uint16_t* from = w.at<uint16_t>(s->list[k]);
    for (int l = 0; l < 32; ++l) {
      const int g = l / 4, t = l % 4 * 2;
      (kTransposed ? rows[8 * k + t][g] : rows[8 * k + g][t]) = from[2 * l];
      (kTransposed ? rows[8 * k + t + 1][g] : rows[8 * k + g][t + 1]) = from[2 * l + 1];
    }
  }
  w.set(count == 4 ? Mask{0xFFFFFFFF} : bit(8 * count) - 1);
  Near near;
  if (!resolve_near(w, s, {16, true}, address_operand(s), near)) return stop_warp(w);
  store_near(w, s, 16, near, reinterpret_cast<const uint8_t*>(rows));
  w.set(all);
  return w.block->stopped ? stop_warp(w) : s + 1;
}

}  // namespace

void add_copies(PlainHandlers& handlers) {
  handlers.copy_async = copy_async;
  handlers.copy_async_commit = commit;
  handlers.copy_async_wait = wait_copies;
  handlers.load_matrix = load_matrix<false>;
  handlers.load_matrix_transposed = load_matrix<true>;
  handlers.store_matrix = store_matrix<false>;
  handlers.store_matrix_transposed = store_matrix<true>;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
