// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_COOPERATIVE_GROUPS_REDUCE_H_
#define MC_EMU_COOPERATIVE_GROUPS_REDUCE_H_

// The function cg::reduce, its operators, and the scan that it is made of.  All members get the
// same bits.  `less` keeps the smaller value, `greater` the larger one.

#include "cooperative_groups.h"

namespace cooperative_groups {

#define MC_GROUP_OPERATOR(name, expression)                           \
  template <class T = void>                                           \
  struct name {                                                       \
    T operator()(const T& a, const T& b) const { return expression; } \
  };                                                                  \
  template <>                                                         \
  struct name<void> {                                                 \
    template <class T>                                                \
    T operator()(const T& a, const T& b) const {                      \
      return expression;                                              \
    }                                                                 \
  };
MC_GROUP_OPERATOR(plus, a + b)
MC_GROUP_OPERATOR(less, b < a ? b : a)
MC_GROUP_OPERATOR(greater, a < b ? b : a)
MC_GROUP_OPERATOR(bit_and, a& b)
MC_GROUP_OPERATOR(bit_or, a | b)
MC_GROUP_OPERATOR(bit_xor, a ^ b)
#undef MC_GROUP_OPERATOR

template <class Group, class T, class Operator>
T inclusive_scan(const Group& group, const T& value, Operator&& combine) {
  const auto size = static_cast<unsigned>(group.size());
  const auto rank = static_cast<unsigned>(group.thread_rank());
  T total = value;
  for (unsigned distance = 1; distance < size; distance *= 2) {
    const T before = group.shfl_up(total, distance);
    if (rank >= distance) total = combine(before, total);
  }
  return total;
}

// The last member of an inclusive scan has the result; a short last tile ends early.
template <class Group, class T, class Operator>
T reduce(const Group& group, const T& value, Operator&& combine) {
  const T total = inclusive_scan(group, value, combine);
  const auto num_members = static_cast<unsigned>(__popc(group.lanes()));
  return group.shfl(total, num_members - 1u);
}

}  // namespace cooperative_groups

#endif  // MC_EMU_COOPERATIVE_GROUPS_REDUCE_H_
