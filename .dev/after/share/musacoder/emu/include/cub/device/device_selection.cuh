// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_DEVICE_DEVICE_SELECTION_CUH_
#define MC_EMU_CUB_DEVICE_DEVICE_SELECTION_CUH_

// The algorithms cub::DeviceSelect, DevicePartition, DeviceRunLengthEncode, DeviceHistogram,
// DeviceMergeSort, DeviceFor and DeviceTransform, made as those of device_algorithms.cuh are.

#include "cub/device/device_algorithms.cuh"

namespace cub {
namespace detail {

// Moves what `is_chosen(i)` says, in order, and gives its number.
template <class In, class Out, class Chosen>
std::ptrdiff_t select(In in, Out out, std::ptrdiff_t count, Chosen is_chosen) {
  std::ptrdiff_t kept = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (is_chosen(i)) out[kept++] = in[i];
  }
  return kept;
}

// The same; the others follow from the end, in reverse order.
template <class In, class Out, class Chosen>
std::ptrdiff_t partition(In in, Out out, std::ptrdiff_t count, Chosen is_chosen) {
  std::ptrdiff_t kept = 0, last = count;
  for (std::ptrdiff_t i = 0; i < count; ++i) out[is_chosen(i) ? kept++ : --last] = in[i];
  return kept;
}

// A stable sort in place, by insertion of runs: no memory but the storage that was asked for.
template <class Key, class Value, class Compare>
void merge_sort(Key* keys, Value* values, std::ptrdiff_t* order, Key* key_room, Value* value_room,
                std::ptrdiff_t count, Compare compare) {
  for (std::ptrdiff_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order, order + count, [&](std::ptrdiff_t a, std::ptrdiff_t b) {
    if (compare(keys[a], keys[b])) return true;
    return !compare(keys[b], keys[a]) && a < b;
  });
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    key_room[i] = keys[order[i]];
    if (values != nullptr) value_room[i] = values[order[i]];
  }
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    keys[i] = key_room[i];
    if (values != nullptr) values[i] = value_room[i];
  }
}

}  // namespace detail

struct DeviceSelect {
  template <class In, class Flags, class Out, class Kept, class Count>
  static cudaError_t Flagged(void* storage, std::size_t& num_bytes, In in, Flags flags, Out out,
                             Kept kept, Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *kept = detail::select(in, out, count, [=](std::ptrdiff_t i) { return bool(flags[i]); });
    });
  }
  template <class In, class Out, class Kept, class Count, class Predicate>
  static cudaError_t If(void* storage, std::size_t& num_bytes, In in, Out out, Kept kept,
                        Count count, Predicate predicate, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *kept = detail::select(in, out, count, [=](std::ptrdiff_t i) { return predicate(in[i]); });
    });
  }
  template <class In, class Out, class Kept, class Count>
  static cudaError_t Unique(void* storage, std::size_t& num_bytes, In in, Out out, Kept kept,
                            Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *kept = detail::select(in, out, count,
                             [=](std::ptrdiff_t i) { return i == 0 || !(in[i] == in[i - 1]); });
    });
  }
};

struct DevicePartition {
  template <class In, class Flags, class Out, class Kept, class Count>
  static cudaError_t Flagged(void* storage, std::size_t& num_bytes, In in, Flags flags, Out out,
                             Kept kept, Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *kept = detail::partition(in, out, count, [=](std::ptrdiff_t i) { return bool(flags[i]); });
    });
  }
  template <class In, class Out, class Kept, class Count, class Predicate>
  static cudaError_t If(void* storage, std::size_t& num_bytes, In in, Out out, Kept kept,
                        Count count, Predicate predicate, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      *kept = detail::partition(in, out, count, [=](std::ptrdiff_t i) { return predicate(in[i]); });
    });
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Unique, class Lengths, class Runs, class Count>
  static cudaError_t Encode(void* storage, std::size_t& num_bytes, In in, Unique unique,
                            Lengths lengths, Runs runs, Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      std::ptrdiff_t num_runs = 0;
      for (std::ptrdiff_t i = 0, length = 1; i < static_cast<std::ptrdiff_t>(count);
           ++i, ++length) {
        if (i + 1 < static_cast<std::ptrdiff_t>(count) && in[i] == in[i + 1]) continue;
        unique[num_runs] = in[i];
        lengths[num_runs++] = length;
        length = 0;
      }
      *runs = num_runs;
    });
  }
};

struct DeviceHistogram {
  template <class In, class Counter, class Level, class Count>
  static cudaError_t HistogramEven(void* storage, std::size_t& num_bytes, In in, Counter* histogram,
                                   int num_levels, Level lower, Level upper, Count count,
                                   cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      const int bins = num_levels - 1;
      for (int bin = 0; bin < bins; ++bin) histogram[bin] = 0;
      for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i) {
        const auto sample = in[i];
        if (sample < lower || !(sample < upper)) continue;
        const double place = (static_cast<double>(sample) - static_cast<double>(lower)) * bins /
                             (static_cast<double>(upper) - static_cast<double>(lower));
        ++histogram[std::min(static_cast<int>(place), bins - 1)];
      }
    });
  }
  template <class In, class Counter, class Level, class Count>
  static cudaError_t HistogramRange(void* storage, std::size_t& num_bytes, In in,
                                    Counter* histogram, int num_levels, const Level* levels,
                                    Count count, cudaStream_t = nullptr) {
    return detail::run_or_ask(storage, num_bytes, [=] {
      for (int bin = 0; bin + 1 < num_levels; ++bin) histogram[bin] = 0;
      for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i) {
        const auto sample = in[i];
        for (int bin = 0; bin + 1 < num_levels; ++bin) {
          if (!(sample < levels[bin]) && sample < levels[bin + 1]) ++histogram[bin];
        }
      }
    });
  }
};

struct DeviceMergeSort {
  template <class Key, class Value, class Count, class Compare>
  static cudaError_t SortPairs(void* storage, std::size_t& num_bytes, Key* keys, Value* values,
                               Count count, Compare compare, cudaStream_t = nullptr) {
    const auto size = static_cast<std::size_t>(count);
    const std::size_t each = sizeof(std::ptrdiff_t) + sizeof(Key) + sizeof(Value);
    auto* order = static_cast<std::ptrdiff_t*>(storage);
    return detail::run_or_ask(
        storage, num_bytes,
        [=] {
          // Keys and values of at most eight bytes' alignment follow the order.
          auto* key_room = reinterpret_cast<Key*>(order + size);
          auto* value_room = reinterpret_cast<Value*>(reinterpret_cast<char*>(key_room) +
                                                      (size * sizeof(Key) + 15) / 16 * 16);
          detail::merge_sort(keys, values, order, key_room, value_room,
                             static_cast<std::ptrdiff_t>(size), compare);
        },
        size * each + 64);
  }
  template <class Key, class Count, class Compare>
  static cudaError_t SortKeys(void* storage, std::size_t& num_bytes, Key* keys, Count count,
                              Compare compare, cudaStream_t stream = nullptr) {
    return SortPairs(storage, num_bytes, keys, static_cast<char*>(nullptr), count, compare, stream);
  }
  template <class Key, class Value, class Count, class Compare>
  static cudaError_t StableSortPairs(void* storage, std::size_t& num_bytes, Key* keys,
                                     Value* values, Count count, Compare compare,
                                     cudaStream_t stream = nullptr) {
    return SortPairs(storage, num_bytes, keys, values, count, compare, stream);
  }
  template <class Key, class Count, class Compare>
  static cudaError_t StableSortKeys(void* storage, std::size_t& num_bytes, Key* keys, Count count,
                                    Compare compare, cudaStream_t stream = nullptr) {
    return SortKeys(storage, num_bytes, keys, count, compare, stream);
  }
};

struct DeviceFor {
  template <class Count, class Operator>
  static cudaError_t Bulk(Count count, Operator apply, cudaStream_t = nullptr) {
    std::size_t num_bytes = 1;
    return detail::run_or_ask(&num_bytes, num_bytes, [=] {
      for (Count i = 0; i < count; ++i) apply(i);
    });
  }
  template <class In, class Count, class Operator>
  static cudaError_t ForEachN(In first, Count count, Operator apply,
                              cudaStream_t stream = nullptr) {
    return Bulk(count, [=](Count i) { apply(first[i]); }, stream);
  }
  template <class In, class Operator>
  static cudaError_t ForEach(In first, In last, Operator apply, cudaStream_t stream = nullptr) {
    return ForEachN(first, static_cast<std::ptrdiff_t>(last - first), apply, stream);
  }
};

struct DeviceTransform {
  template <class In, class Out, class Count, class Operator>
  static cudaError_t Transform(In in, Out out, Count count, Operator apply,
                               cudaStream_t stream = nullptr) {
    return DeviceFor::Bulk(count, [=](Count i) { out[i] = apply(in[i]); }, stream);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_DEVICE_DEVICE_SELECTION_CUH_
