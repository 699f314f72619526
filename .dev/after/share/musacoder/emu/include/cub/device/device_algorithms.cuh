// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_DEVICE_DEVICE_ALGORITHMS_CUH_
#define MC_EMU_CUB_DEVICE_DEVICE_ALGORITHMS_CUH_

// The algorithms of cub::DeviceReduce, DeviceScan, DeviceSegmentedReduce and DeviceRadixSort: each
// is a launch of one thread, which does one element after another.  As in CUB a call without
// temporary storage only returns how much it needs.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <type_traits>

#include "cub/iterator/iterators.cuh"
#include "cub/util/operators.cuh"
#include "cub/util/radix.cuh"
#include "mc_emu/launch.h"

namespace cub {
namespace detail {

// Runs `body` on the device, or says how much storage that takes.
template <class Body>
cudaError_t run_or_ask(void* storage, std::size_t& num_bytes, Body body,
                       std::size_t num_bytes_needed = 1) {
  if (storage == nullptr) {
    num_bytes = num_bytes_needed;
    return cudaSuccess;
  }
  ::mc_emu::launch(
      ::mc_emu::Config(dim3(1), dim3(1)), "cub::Device", [](Body work) { work(); }, body);
  return cudaPeekAtLastError();
}

template <class In, class T, class Operator>
T fold(In in, std::ptrdiff_t begin, std::ptrdiff_t end, Operator combine, T initial) {
  T total = initial;
  for (std::ptrdiff_t i = begin; i < end; ++i) total = combine(total, in[i]);
  return total;
}

template <class In>
using ValueOf = typename std::remove_cv<typename std::iterator_traits<In>::value_type>::type;

// The value that loses every comparison under Max (or Min).
template <class T>
T least() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}
template <class T>
T most() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}

// Writes the place and value of the best of in[0..count): `better(a, b)` says that a beats b.
template <class In, class Out, class Better>
void find_best(In in, Out out, std::ptrdiff_t count, Better better) {
  std::ptrdiff_t best = 0;
  for (std::ptrdiff_t i = 1; i < count; ++i) {
    if (better(in[i], in[best])) best = i;
  }
  if (count > 0) {
    out->key = static_cast<decltype(out->key)>(best);
    out->value = in[best];
  }
}

// `order` has room for `count`.
template <class Key, class Value>
void radix_sort(const Key* keys_in, Key* keys_out, const Value* values_in, Value* values_out,
                std::ptrdiff_t* order, std::ptrdiff_t count, int begin_bit, int end_bit,
                bool descending) {
  for (std::ptrdiff_t i = 0; i < count; ++i) order[i] = i;
  // Not std::stable_sort, which takes host memory.
  std::sort(order, order + count, [&](std::ptrdiff_t a, std::ptrdiff_t b) {
    const auto key_a = radix_bits(keys_in[a], begin_bit, end_bit, descending);
    const auto key_b = radix_bits(keys_in[b], begin_bit, end_bit, descending);
    return key_a != key_b ? key_a < key_b : a < b;
  });
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    keys_out[i] = keys_in[order[i]];
    if (values_out != nullptr) values_out[i] = values_in[order[i]];
  }
}

}  // namespace detail

struct DeviceReduce {
  template <class In, class Out, class Operator, class T, class Count>
  static cudaError_t Reduce(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                            Operator combine, T initial, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *out = detail::fold(in, 0, static_cast<std::ptrdiff_t>(count), combine, initial);
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t Sum(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    return Reduce(storage, num_bytes, in, out, count, ::cub::Sum(), detail::ValueOf<In>(0), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Max(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = detail::ValueOf<In>;
    return Reduce(storage, num_bytes, in, out, count, ::cub::Max(), detail::least<T>(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t Min(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                         cudaStream_t stream = nullptr) {
    using T = detail::ValueOf<In>;
    return Reduce(storage, num_bytes, in, out, count, ::cub::Min(), detail::most<T>(), stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMax(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                            cudaStream_t = nullptr) {
    using T = detail::ValueOf<In>;
    return detail::run_or_ask(storage, num_bytes, [=] {
      detail::find_best(in, out, static_cast<std::ptrdiff_t>(count),
                        [](const T& a, const T& b) { return b < a; });
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t ArgMin(void* storage, std::size_t& num_bytes, In in, Out out, Count count,
                            cudaStream_t = nullptr) {
    using T = detail::ValueOf<In>;
    return detail::run_or_ask(storage, num_bytes, [=] {
      detail::find_best(in, out, static_cast<std::ptrdiff_t>(count),
                        [](const T& a, const T& b) { return a < b; });
    });
  }
};

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begins, class Ends, class Operator, class T>
  static cudaError_t Reduce(void* storage, std::size_t& num_bytes, In in, Out out, int num_segments,
                            Begins begins, Ends ends, Operator combine, T initial,
                            cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      for (int i = 0; i < num_segments; ++i) {
        out[i] = detail::fold(in, static_cast<std::ptrdiff_t>(begins[i]),
                              static_cast<std::ptrdiff_t>(ends[i]), combine, initial);
      }
    });
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Sum(void* storage, std::size_t& num_bytes, In in, Out out, int num_segments,
                         Begins begins, Ends ends, cudaStream_t = nullptr) {
    return Reduce(storage, num_bytes, in, out, num_segments, begins, ends, ::cub::Sum(),
                  detail::ValueOf<In>(0));
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Max(void* storage, std::size_t& num_bytes, In in, Out out, int num_segments,
                         Begins begins, Ends ends, cudaStream_t = nullptr) {
    return Reduce(storage, num_bytes, in, out, num_segments, begins, ends, ::cub::Max(),
                  detail::least<detail::ValueOf<In>>());
  }
  template <class In, class Out, class Begins, class Ends>
  static cudaError_t Min(void* storage, std::size_t& num_bytes, In in, Out out, int num_segments,
                         Begins begins, Ends ends, cudaStream_t = nullptr) {
    return Reduce(storage, num_bytes, in, out, num_segments, begins, ends, ::cub::Min(),
                  detail::most<detail::ValueOf<In>>());
  }
};

struct DeviceScan {
  template <class In, class Out, class Operator, class T, class Count>
  static cudaError_t ExclusiveScan(void* storage, std::size_t& num_bytes, In in, Out out,
                                   Operator combine, T initial, Count count,
                                   cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      T running = initial;
      for (Count i = 0; i < count; ++i) {
        const T item = in[i];  // The output may be the input.
        out[i] = running;
        running = combine(running, item);
      }
    });
  }
  template <class In, class Out, class Operator, class Count>
  static cudaError_t InclusiveScan(void* storage, std::size_t& num_bytes, In in, Out out,
                                   Operator combine, Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      if (count <= 0) return;
      detail::ValueOf<In> running = in[0];
      out[0] = running;
      for (Count i = 1; i < count; ++i) {
        running = combine(running, in[i]);
        out[i] = running;
      }
    });
  }
  template <class In, class Out, class Count>
  static cudaError_t ExclusiveSum(void* storage, std::size_t& num_bytes, In in, Out out,
                                  Count count, cudaStream_t stream = nullptr) {
    return ExclusiveScan(storage, num_bytes, in, out, ::cub::Sum(), detail::ValueOf<In>(0), count,
                         stream);
  }
  template <class In, class Out, class Count>
  static cudaError_t InclusiveSum(void* storage, std::size_t& num_bytes, In in, Out out,
                                  Count count, cudaStream_t stream = nullptr) {
    return InclusiveScan(storage, num_bytes, in, out, ::cub::Sum(), count, stream);
  }
};

struct DeviceRadixSort {
  template <class Key, class Count>
  static cudaError_t SortKeys(void* storage, std::size_t& num_bytes, const Key* in, Key* out,
                              Count count, int begin_bit = 0, int end_bit = 8 * sizeof(Key),
                              cudaStream_t = nullptr) {
    return sort<Key, NullType>(storage, num_bytes, in, out, nullptr, nullptr, count, begin_bit,
                               end_bit, false);
  }
  template <class Key, class Count>
  static cudaError_t SortKeysDescending(void* storage, std::size_t& num_bytes, const Key* in,
                                        Key* out, Count count, int begin_bit = 0,
                                        int end_bit = 8 * sizeof(Key), cudaStream_t = nullptr) {
    return sort<Key, NullType>(storage, num_bytes, in, out, nullptr, nullptr, count, begin_bit,
                               end_bit, true);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairs(void* storage, std::size_t& num_bytes, const Key* in, Key* out,
                               const Value* values_in, Value* values_out, Count count,
                               int begin_bit = 0, int end_bit = 8 * sizeof(Key),
                               cudaStream_t = nullptr) {
    return sort(storage, num_bytes, in, out, values_in, values_out, count, begin_bit, end_bit,
                false);
  }
  template <class Key, class Value, class Count>
  static cudaError_t SortPairsDescending(void* storage, std::size_t& num_bytes, const Key* in,
                                         Key* out, const Value* values_in, Value* values_out,
                                         Count count, int begin_bit = 0,
                                         int end_bit = 8 * sizeof(Key), cudaStream_t = nullptr) {
    return sort(storage, num_bytes, in, out, values_in, values_out, count, begin_bit, end_bit,
                true);
  }

 private:
  template <class Key, class Value, class Count>
  static cudaError_t sort(void* storage, std::size_t& num_bytes, const Key* in, Key* out,
                          const Value* values_in, Value* values_out, Count count, int begin_bit,
                          int end_bit, bool descending) {
    const auto number = static_cast<std::ptrdiff_t>(count);
    auto* const order = static_cast<std::ptrdiff_t*>(storage);
    return detail::run_or_ask(
        storage, num_bytes,
        [=] {
          detail::radix_sort(in, out, values_in, values_out, order, number, begin_bit, end_bit,
                             descending);
        },
        static_cast<std::size_t>(number + 1) * sizeof(std::ptrdiff_t));
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_DEVICE_DEVICE_ALGORITHMS_CUH_
