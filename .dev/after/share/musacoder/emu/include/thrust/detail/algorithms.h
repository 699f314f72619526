// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_DETAIL_ALGORITHMS_H_
#define MC_EMU_THRUST_DETAIL_ALGORITHMS_H_

// Thrust's algorithms, each a loop over its elements in order; see device.h for where they run.
// Every algorithm also takes a policy before its first iterator.

#include <algorithm>
#include <functional>
#include <numeric>

#include "thrust/detail/device.h"
#include "thrust/detail/iterators.h"

namespace thrust {
namespace detail {

template <class Iterator>
using ValueOf = std::remove_cv_t<typename std::iterator_traits<Iterator>::value_type>;

// Calls algorithm(iterators...) with a policy in front or without one.
template <class Algorithm, class First, class... Rest>
auto dispatch(Algorithm algorithm, const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, mc_emu_device_policy>) {
    return run(true, [=] { return algorithm(plain(rest)...); });
  } else if constexpr (std::is_same_v<First, mc_emu_host_policy>) {
    return run(false, [=] { return algorithm(plain(rest)...); });
  } else {
    return run(IsDevice<First>::value || (IsDevice<Rest>::value || ...),
               [=] { return algorithm(plain(first), plain(rest)...); });
  }
}

// The first iterator of a call, which says how far a result lies from it.
template <class First, class Second, class... Rest>
auto iterator_of(const First& first, const Second& second, const Rest&...) {
  if constexpr (is_policy<First>) {
    return second;
  } else {
    return first;
  }
}

// In place, without memory: by heap where the order of equals is free, by insertion where not.
struct Sort {
  template <class It, class Compare>
  void operator()(It first, It last, Compare compare) const {
    std::sort(first, last, compare);
  }
  template <class It>
  void operator()(It first, It last) const {
    std::sort(first, last);
  }
};
struct SortByKey {
  template <class It, class Values, class Compare>
  void operator()(It first, It last, Values values, Compare compare) const {
    for (std::ptrdiff_t i = 1; i < last - first; ++i) {
      const ValueOf<It> key = first[i];
      const ValueOf<Values> value = values[i];
      std::ptrdiff_t at = i;
      for (; at > 0 && compare(key, first[at - 1]); --at) {
        first[at] = first[at - 1];
        values[at] = values[at - 1];
      }
      first[at] = key;
      values[at] = value;
    }
  }
  template <class It, class Values>
  void operator()(It first, It last, Values values) const {
    (*this)(first, last, values, std::less<>());
  }
};
struct Reduce {
  template <class It, class T, class Operator>
  T operator()(It first, It last, T total, Operator combine) const {
    for (; first != last; ++first) total = combine(total, *first);
    return total;
  }
  template <class It, class T>
  T operator()(It first, It last, T total) const {
    return (*this)(first, last, total, std::plus<>());
  }
  template <class It>
  auto operator()(It first, It last) const {
    return (*this)(first, last, ValueOf<It>(), std::plus<>());
  }
};
struct TransformReduce {
  template <class It, class Function, class T, class Operator>
  T operator()(It first, It last, Function function, T total, Operator combine) const {
    for (; first != last; ++first) total = combine(total, function(*first));
    return total;
  }
};
struct InnerProduct {
  template <class A, class B, class T, class Sum, class Product>
  T operator()(A first, A last, B other, T total, Sum sum, Product product) const {
    for (; first != last; ++first, ++other) total = sum(total, product(*first, *other));
    return total;
  }
  template <class A, class B, class T>
  T operator()(A first, A last, B other, T total) const {
    return (*this)(first, last, other, total, std::plus<>(), std::multiplies<>());
  }
};
struct Transform {
  template <class In, class Out, class Function>
  std::ptrdiff_t operator()(In first, In last, Out out, Function function) const {
    const std::ptrdiff_t count = last - first;
    for (std::ptrdiff_t i = 0; i < count; ++i) out[i] = function(first[i]);
    return count;
  }
  template <class In, class Other, class Out, class Function>
  std::ptrdiff_t operator()(In first, In last, Other other, Out out, Function function) const {
    const std::ptrdiff_t count = last - first;
    for (std::ptrdiff_t i = 0; i < count; ++i) out[i] = function(first[i], other[i]);
    return count;
  }
};
struct InclusiveScan {
  template <class In, class Out, class Operator>
  void operator()(In first, In last, Out out, Operator combine) const {
    if (first == last) return;
    ValueOf<In> total = first[0];
    for (std::ptrdiff_t i = 0; i < last - first; ++i) {
      if (i > 0) total = combine(total, first[i]);
      out[i] = total;
    }
  }
  template <class In, class Out>
  void operator()(In first, In last, Out out) const {
    (*this)(first, last, out, std::plus<>());
  }
};
struct ExclusiveScan {
  template <class In, class Out, class T, class Operator>
  void operator()(In first, In last, Out out, T total, Operator combine) const {
    const std::ptrdiff_t count = last - first;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const ValueOf<In> value = first[i];
      out[i] = total;
      total = combine(total, value);
    }
  }
  template <class In, class Out, class T>
  void operator()(In first, In last, Out out, T total) const {
    (*this)(first, last, out, total, std::plus<>());
  }
  template <class In, class Out>
  void operator()(In first, In last, Out out) const {
    (*this)(first, last, out, ValueOf<In>(), std::plus<>());
  }
};
struct Fill {
  template <class It, class T>
  void operator()(It first, It last, T value) const {
    for (; first != last; ++first) *first = value;
  }
};
struct Sequence {
  template <class It, class T>
  void operator()(It first, It last, T value, T step) const {
    for (; first != last; ++first, value = value + step) *first = value;
  }
  template <class It, class T>
  void operator()(It first, It last, T value) const {
    (*this)(first, last, value, T(1));
  }
  template <class It>
  void operator()(It first, It last) const {
    using T = ValueOf<It>;
    (*this)(first, last, T(0), T(1));
  }
};
struct ForEach {
  template <class It, class Function>
  void operator()(It first, It last, Function function) const {
    for (; first != last; ++first) function(*first);
  }
};
struct ForEachN {
  template <class It, class Count, class Function>
  void operator()(It first, Count count, Function function) const {
    for (Count i = 0; i < count; ++i) function(first[i]);
  }
};
struct Copy {
  template <class In, class Out>
  std::ptrdiff_t operator()(In first, In last, Out out) const {
    const std::ptrdiff_t count = last - first;
    for (std::ptrdiff_t i = 0; i < count; ++i) out[i] = first[i];
    return count;
  }
};
struct CopyIf {
  template <class In, class Out, class Predicate>
  std::ptrdiff_t operator()(In first, In last, Out out, Predicate predicate) const {
    std::ptrdiff_t kept = 0;
    for (; first != last; ++first) {
      if (predicate(*first)) out[kept++] = *first;
    }
    return kept;
  }
};
struct Gather {
  template <class Map, class In, class Out>
  void operator()(Map first, Map last, In in, Out out) const {
    for (std::ptrdiff_t i = 0; i < last - first; ++i) out[i] = in[first[i]];
  }
};
struct Scatter {
  template <class In, class Map, class Out>
  void operator()(In first, In last, Map map, Out out) const {
    for (std::ptrdiff_t i = 0; i < last - first; ++i) out[map[i]] = first[i];
  }
};
struct Unique {
  template <class It, class Equal>
  std::ptrdiff_t operator()(It first, It last, Equal equal) const {
    return std::unique(first, last, equal) - first;
  }
  template <class It>
  std::ptrdiff_t operator()(It first, It last) const {
    return std::unique(first, last) - first;
  }
};
struct RemoveIf {
  template <class It, class Predicate>
  std::ptrdiff_t operator()(It first, It last, Predicate predicate) const {
    return std::remove_if(first, last, predicate) - first;
  }
};
struct Reverse {
  template <class It>
  void operator()(It first, It last) const {
    std::reverse(first, last);
  }
};
struct Count {
  template <class It, class T>
  std::ptrdiff_t operator()(It first, It last, T value) const {
    return std::count(first, last, value);
  }
};
struct CountIf {
  template <class It, class Predicate>
  std::ptrdiff_t operator()(It first, It last, Predicate predicate) const {
    return std::count_if(first, last, predicate);
  }
};
struct MaxElement {
  template <class It, class... Compare>
  std::ptrdiff_t operator()(It first, It last, Compare... compare) const {
    return std::max_element(first, last, compare...) - first;
  }
};
struct MinElement {
  template <class It, class... Compare>
  std::ptrdiff_t operator()(It first, It last, Compare... compare) const {
    return std::min_element(first, last, compare...) - first;
  }
};
struct Find {
  template <class It, class T>
  std::ptrdiff_t operator()(It first, It last, T value) const {
    return std::find(first, last, value) - first;
  }
};
struct LowerBound {
  template <class It, class T>
  std::ptrdiff_t operator()(It first, It last, T value) const {
    return std::lower_bound(first, last, value) - first;
  }
};
struct UpperBound {
  template <class It, class T>
  std::ptrdiff_t operator()(It first, It last, T value) const {
    return std::upper_bound(first, last, value) - first;
  }
};
struct ReduceByKey {
  template <class Keys, class Values, class KeysOut, class ValuesOut>
  std::ptrdiff_t operator()(Keys first, Keys last, Values values, KeysOut keys_out,
                            ValuesOut values_out) const {
    std::ptrdiff_t runs = 0;
    for (std::ptrdiff_t i = 0; i < last - first; ++i) {
      if (i > 0 && first[i] == first[i - 1]) {
        values_out[runs - 1] = values_out[runs - 1] + values[i];
      } else {
        keys_out[runs] = first[i];
        values_out[runs++] = values[i];
      }
    }
    return runs;
  }
};

}  // namespace detail

#define MC_THRUST(name, Algorithm)                              \
  template <class... Arguments>                                 \
  auto name(const Arguments&... arguments) {                    \
    return detail::dispatch(detail::Algorithm(), arguments...); \
  }
// The same for algorithms that give an iterator: a distance from the first one of a call, or, for
// those that write elsewhere, from `out`, the argument at that place behind the policy.
#define MC_THRUST_PLACE(name, Algorithm)                        \
  template <class... Arguments>                                 \
  auto name(const Arguments&... arguments) {                    \
    return detail::iterator_of(arguments...) +                  \
           detail::dispatch(detail::Algorithm(), arguments...); \
  }
#define MC_THRUST_OUT(name, Algorithm)                                                     \
  template <class In, class Out, class... Rest>                                            \
  auto name(const In& first, const In& last, const Out& out, const Rest&... rest) {        \
    return out + detail::dispatch(detail::Algorithm(), first, last, out, rest...);         \
  }                                                                                        \
  template <class Policy, class In, class Out, class... Rest,                              \
            std::enable_if_t<detail::is_policy<Policy>, int> = 0>                          \
  auto name(const Policy& policy, const In& first, const In& last, const Out& out,         \
            const Rest&... rest) {                                                         \
    return out + detail::dispatch(detail::Algorithm(), policy, first, last, out, rest...); \
  }
MC_THRUST(sort, Sort)
MC_THRUST(stable_sort, Sort)
MC_THRUST(sort_by_key, SortByKey)
MC_THRUST(stable_sort_by_key, SortByKey)
MC_THRUST(reduce, Reduce)
MC_THRUST(transform_reduce, TransformReduce)
MC_THRUST(inner_product, InnerProduct)
MC_THRUST(transform, Transform)
MC_THRUST(inclusive_scan, InclusiveScan)
MC_THRUST(exclusive_scan, ExclusiveScan)
MC_THRUST(fill, Fill)
MC_THRUST(sequence, Sequence)
MC_THRUST(for_each, ForEach)
MC_THRUST(for_each_n, ForEachN)
MC_THRUST(gather, Gather)
MC_THRUST(scatter, Scatter)
MC_THRUST(reverse, Reverse)
MC_THRUST(count, Count)
MC_THRUST(count_if, CountIf)
MC_THRUST_PLACE(unique, Unique)
MC_THRUST_PLACE(remove_if, RemoveIf)
MC_THRUST_PLACE(max_element, MaxElement)
MC_THRUST_PLACE(min_element, MinElement)
MC_THRUST_PLACE(find, Find)
MC_THRUST_PLACE(lower_bound, LowerBound)
MC_THRUST_PLACE(upper_bound, UpperBound)
MC_THRUST_OUT(copy_if, CopyIf)
#undef MC_THRUST_OUT
#undef MC_THRUST_PLACE
#undef MC_THRUST

// Copies between host and device go through the runtime, which knows both sides.
template <class In, class Out>
Out copy(In first, In last, Out out) {
  constexpr bool kDeviceIn = detail::IsDevice<In>::value, kDeviceOut = detail::IsDevice<Out>::value;
  if constexpr (kDeviceIn != kDeviceOut) {
    using T = detail::ValueOf<In>;
    const std::ptrdiff_t count = last - first;
    if (count > 0) {
      cudaMemcpy(const_cast<std::remove_cv_t<T>*>(&*detail::plain(out)), &*detail::plain(first),
                 static_cast<std::size_t>(count) * sizeof(T), cudaMemcpyDefault);
    }
    return out + count;
  } else {
    return out + detail::dispatch(detail::Copy(), first, last, out);
  }
}
template <class Policy, class In, class Out, std::enable_if_t<detail::is_policy<Policy>, int> = 0>
Out copy(const Policy& policy, In first, In last, Out out) {
  return out + detail::dispatch(detail::Copy(), policy, first, last, out);
}
template <class Keys, class Values, class KeysOut, class ValuesOut>
pair<KeysOut, ValuesOut> reduce_by_key(Keys first, Keys last, Values values, KeysOut keys_out,
                                       ValuesOut values_out) {
  const std::ptrdiff_t runs =
      detail::dispatch(detail::ReduceByKey(), first, last, values, keys_out, values_out);
  return {keys_out + runs, values_out + runs};
}
template <class Policy, class Keys, class Values, class KeysOut, class ValuesOut,
          std::enable_if_t<detail::is_policy<Policy>, int> = 0>
pair<KeysOut, ValuesOut> reduce_by_key(const Policy& policy, Keys first, Keys last, Values values,
                                       KeysOut keys_out, ValuesOut values_out) {
  const std::ptrdiff_t runs =
      detail::dispatch(detail::ReduceByKey(), policy, first, last, values, keys_out, values_out);
  return {keys_out + runs, values_out + runs};
}

}  // namespace thrust

#endif  // MC_EMU_THRUST_DETAIL_ALGORITHMS_H_
