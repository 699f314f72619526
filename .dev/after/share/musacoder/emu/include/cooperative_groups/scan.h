// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_SCAN_H_
#define MC_EMU_COOPERATIVE_GROUPS_SCAN_H_

// The functions cg::inclusive_scan and cg::exclusive_scan, by rank.  The first member of an
// exclusive scan gets a value-initialised T.

#include "cooperative_groups/reduce.h"

namespace cooperative_groups {

template <class Group, class T>
T inclusive_scan(const Group& group, const T& value) {
  return inclusive_scan(group, value, plus<T>());
}

template <class Group, class T, class Operator>
T exclusive_scan(const Group& group, const T& value, Operator&& combine) {
  const T before = group.shfl_up(inclusive_scan(group, value, combine), 1);
  return group.thread_rank() == 0 ? T{} : before;
}
template <class Group, class T>
T exclusive_scan(const Group& group, const T& value) {
  return exclusive_scan(group, value, plus<T>());
}

}  // namespace cooperative_groups

#endif  // MC_EMU_COOPERATIVE_GROUPS_SCAN_H_
