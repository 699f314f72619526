// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_H_
#define MC_EMU_COOPERATIVE_GROUPS_H_

// CUDA's <cooperative_groups.h> for code that runs on the CPU: the block, tiles of 1 to 32 threads,
// coalesced threads, the grid of a cooperative launch, and the cluster of one block.  Everything is
// written in CUDA's own language (barriers, shuffles, votes).  Larger clusters and tiles wider than
// a warp are missing.
//
// A group within a warp is the set of its lanes, as a mask; ranks count the lanes of the mask.
// A group is a value; a tile of a tile knows which part of its parent it is (meta_group_rank).

#include "cooperative_groups/lanes.h"
#include "cuda_runtime.h"

namespace cooperative_groups {

namespace details = ::mc_emu;  // Private.

// Any group, with what all groups can do.
class thread_group {
 public:
  void sync(int line = __builtin_LINE()) const;
  unsigned long long size() const;
  unsigned long long num_threads() const { return size(); }
  unsigned long long thread_rank() const;

 protected:
  enum class Kind { kLanes, kBlock, kGrid };
  thread_group(Kind kind, unsigned mask) : kind_(kind), mask_(mask) {}

  Kind kind_;
  unsigned mask_;  // The lanes of a group within a warp.
};

class thread_block : public thread_group {
 public:
  static void sync(int line = __builtin_LINE()) { __syncthreads(line); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static unsigned thread_rank() { return details::rank_in_block(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static dim3 group_dim() { return dim_threads(); }

 private:
  thread_block() : thread_group(Kind::kBlock, 0) {}
  friend thread_block this_thread_block();
};

inline thread_block this_thread_block() { return thread_block(); }

class grid_group : public thread_group {
 public:
  bool is_valid() const { return mc_emu_is_cooperative() != 0; }
  void sync(int line = __builtin_LINE()) const { mc_emu_grid_barrier(line); }
  static unsigned long long num_blocks() {
    return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z;
  }
  static unsigned long long block_rank() {
    return (static_cast<unsigned long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x +
           blockIdx.x;
  }
  static unsigned long long size() { return num_blocks() * details::block_size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() {
    return block_rank() * details::block_size() + details::rank_in_block();
  }
  static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static dim3 dim_blocks() { return group_dim(); }
  static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }

 private:
  grid_group() : thread_group(Kind::kGrid, 0) {}
  friend grid_group this_grid();
};

inline grid_group this_grid() { return grid_group(); }

// The cluster of a launch without clusters: one block.
class cluster_group : public thread_group {
 public:
  class arrival_token {};
  static void sync(int line = __builtin_LINE()) { __syncthreads(line); }
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(int line = __builtin_LINE()) { __syncthreads(line); }
  static void barrier_wait(arrival_token&&, int line = __builtin_LINE()) { __syncthreads(line); }
  static unsigned size() { return details::block_size(); }
  static unsigned num_threads() { return details::block_size(); }
  static unsigned thread_rank() { return details::rank_in_block(); }
  static unsigned num_blocks() { return 1; }
  static unsigned block_rank() { return 0; }
  static dim3 dim_blocks() { return dim3(1, 1, 1); }
  static dim3 block_index() { return dim3(0, 0, 0); }
  static dim3 dim_threads() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static unsigned query_shared_rank(const void*) { return 0; }
  template <class T>
  static T* map_shared_rank(T* address, unsigned) {
    return address;
  }

 private:
  cluster_group() : thread_group(Kind::kBlock, 0) {}
  friend cluster_group this_cluster();
};

inline cluster_group this_cluster() { return cluster_group(); }
inline cluster_group mc_this_cluster_of_blocks() {
  mc_emu_unsupported("thread block clusters");
  return this_cluster();
}

// Threads of one warp, in any pattern: what coalesced_threads() and partitions by label give.
class coalesced_group : public thread_group {
 public:
  explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
      : thread_group(Kind::kLanes, mask), meta_rank_(meta_rank), meta_size_(meta_size) {}

  void sync(int line = __builtin_LINE()) const {
    details::group_vote(kMcEmuWarpSync, mask_, 0, line);
  }
  unsigned size() const { return static_cast<unsigned>(__popc(mask_)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__popc(mask_ & details::lanes_below(details::lane())));
  }
  unsigned lanes() const { return mask_; }  // A member that CUDA lacks.
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  template <class T>
  T shfl(const T& value, unsigned rank) const {
    return from_lane(value, details::lane_of_rank(mask_, rank % size()));
  }
  template <class T>
  T shfl_down(const T& value, unsigned delta) const {
    const unsigned rank = thread_rank() + delta;
    return from_lane(value, rank < size() ? details::lane_of_rank(mask_, rank) : details::lane());
  }
  template <class T>
  T shfl_up(const T& value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return from_lane(value,
                     delta <= rank ? details::lane_of_rank(mask_, rank - delta) : details::lane());
  }

  int any(int predicate) const { return votes(predicate) != 0; }
  int all(int predicate) const { return votes(predicate) == mask_; }
  unsigned ballot(int predicate) const { return details::packed(votes(predicate), mask_); }
  template <class T>
  unsigned match_any(T value) const {
    return details::packed(details::group_vote(kMcEmuWarpMatchAny, mask_, value), mask_);
  }
  template <class T>
  unsigned match_all(T value, int& all_equal) const {
    const unsigned lanes = details::group_vote(kMcEmuWarpMatchAll, mask_, value);
    all_equal = lanes != 0;
    return details::packed(lanes, mask_);
  }

 protected:
  template <class T>
  T from_lane(const T& value, unsigned lane) const {
    return details::group_shuffle(kMcEmuWarpIndex, mask_, value, static_cast<int>(lane), 32);
  }
  unsigned votes(int predicate) const {
    return details::group_vote(kMcEmuWarpBallot, mask_, predicate != 0);
  }

  unsigned meta_rank_;
  unsigned meta_size_;
};

// `Size` neighbouring threads, aligned; the parent is only a tag.
template <unsigned Size, class Parent = void>
class thread_block_tile;

template <unsigned Size>
class thread_block_tile<Size, void> : public coalesced_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                "the emulator has tiles of 1, 2, 4, 8, 16 and 32 threads");

 public:
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  static unsigned thread_rank() { return details::rank_in_block() % Size; }

  template <class T>
  T shfl(const T& value, int rank) const {
    return details::group_shuffle(kMcEmuWarpIndex, mask_, value, rank, Size);
  }
  template <class T>
  T shfl_down(const T& value, unsigned delta) const {
    return details::group_shuffle(kMcEmuWarpDown, mask_, value, static_cast<int>(delta), Size);
  }
  template <class T>
  T shfl_up(const T& value, unsigned delta) const {
    return details::group_shuffle(kMcEmuWarpUp, mask_, value, static_cast<int>(delta), Size);
  }
  template <class T>
  T shfl_xor(const T& value, unsigned lane_mask) const {
    return details::group_shuffle(kMcEmuWarpXor, mask_, value, static_cast<int>(lane_mask), Size);
  }

 protected:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : coalesced_group(details::lanes_of_segment(Size), meta_rank, meta_size) {}
};

template <unsigned Size, class Parent>
class thread_block_tile : public thread_block_tile<Size, void> {
 public:
  thread_block_tile(unsigned meta_rank, unsigned meta_size)
      : thread_block_tile<Size, void>(meta_rank, meta_size) {}
};

template <unsigned Size>
thread_block_tile<Size, thread_block> tiled_partition(const thread_block& block) {
  return {block.thread_rank() / Size, (block.size() + Size - 1) / Size};
}
template <unsigned Size, unsigned ParentSize, class Grandparent>
thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tiled_partition(
    const thread_block_tile<ParentSize, Grandparent>& parent) {
  static_assert(Size <= ParentSize, "a tile is no larger than its parent");
  return {parent.thread_rank() / Size, ParentSize / Size};
}

// Parts of `size` threads each, by rank.
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned part = parent.thread_rank() / size;
  const unsigned members = parent.ballot(1);
  unsigned mask = 0;
  for (unsigned rank = part * size; rank < (part + 1) * size && members >> rank; ++rank) {
    mask |= 1u << parent.shfl(details::lane(), rank);
    if (rank == 31u) break;
  }
  return coalesced_group(mask, part, (parent.size() + size - 1) / size);
}
inline coalesced_group tiled_partition(const thread_block&, unsigned size) {
  return coalesced_group(details::lanes_of_segment(size), details::rank_in_block() / size,
                         (details::block_size() + size - 1) / size);
}

// The threads of this warp, or of 32 of its lanes, that arrived here together.
inline coalesced_group coalesced_threads(int line = __builtin_LINE()) {
  return coalesced_group(mc_emu_active_mask(kMcEmuWarpGroup, line));
}

inline thread_block_tile<1, thread_block> this_thread() {
  return {details::rank_in_block(), details::block_size()};
}

// The members that gave the same label, and those that gave the same truth.
template <class Label>
coalesced_group labeled_partition(const coalesced_group& parent, Label label) {
  const unsigned size = parent.size(), lane = details::lane();
  unsigned same = 0;
  for (unsigned rank = 0; rank < size; ++rank) {
    const bool equal = parent.shfl(label, rank) == label;
    const unsigned other_lane = parent.shfl(lane, rank);
    if (equal) same |= 1u << other_lane;
  }
  // Parts are numbered by their first members.
  const unsigned first = details::lane_of_rank(same, 0);
  unsigned part = 0, num_parts = 0;
  for (unsigned rank = 0; rank < size; ++rank) {
    const unsigned other_first = parent.shfl(first, rank);
    if (other_first != parent.shfl(lane, rank)) continue;
    if (other_first < first) ++part;
    ++num_parts;
  }
  return coalesced_group(same, part, num_parts);
}
inline coalesced_group binary_partition(const coalesced_group& parent, bool truth) {
  return labeled_partition(parent, truth ? 1u : 0u);
}

inline void thread_group::sync(int line) const {
  if (kind_ == Kind::kBlock) return thread_block::sync(line);
  if (kind_ == Kind::kGrid) return this_grid().sync(line);
  details::group_vote(kMcEmuWarpSync, mask_, 0, line);
}
inline unsigned long long thread_group::size() const {
  if (kind_ == Kind::kBlock) return thread_block::size();
  if (kind_ == Kind::kGrid) return grid_group::size();
  return static_cast<unsigned long long>(__popc(mask_));
}
inline unsigned long long thread_group::thread_rank() const {
  if (kind_ == Kind::kBlock) return thread_block::thread_rank();
  if (kind_ == Kind::kGrid) return grid_group::thread_rank();
  return static_cast<unsigned long long>(__popc(mask_ & details::lanes_below(details::lane())));
}

template <class Group>
void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <class Group>
unsigned long long thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
unsigned long long group_size(const Group& group) {
  return group.size();
}

template <class Group, class Function, class... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(static_cast<Arguments&&>(arguments)...);
}

}  // namespace cooperative_groups

#endif  // MC_EMU_COOPERATIVE_GROUPS_H_
