// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_
#define MC_EMU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_

// The function cg::memcpy_async copies at once, each member every size()-th element, and cg::wait
// is the barrier after which the others may read.  A missing wait is thus found as a race.

#include <cstddef>

#include "cooperative_groups.h"

namespace cooperative_groups {

// Copies `num_bytes` bytes, whole elements.
template <class Group, class T, class Size>
void memcpy_async(const Group& group, T* destination, const T* source, const Size& num_bytes) {
  const auto count = static_cast<std::size_t>(num_bytes) / sizeof(T);
  for (std::size_t i = group.thread_rank(); i < count; i += group.size()) {
    destination[i] = source[i];
  }
}

// The same for counts of elements on both sides; the smaller one counts.
template <class Group, class T, class DestinationSize, class SourceSize>
void memcpy_async(const Group& group, T* destination, const DestinationSize& destination_count,
                  const T* source, const SourceSize& source_count) {
  const auto to = static_cast<std::size_t>(destination_count);
  const auto from = static_cast<std::size_t>(source_count);
  memcpy_async(group, destination, source, (to < from ? to : from) * sizeof(T));
}

template <class Group>
void wait(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}
template <unsigned NumStages, class Group>
void wait_prior(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}

}  // namespace cooperative_groups

#endif  // MC_EMU_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H_
