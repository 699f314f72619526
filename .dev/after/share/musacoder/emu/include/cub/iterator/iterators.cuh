// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_ITERATOR_ITERATORS_CUH_
#define MC_EMU_CUB_ITERATOR_ITERATORS_CUH_

// CUB's iterators, and loads and stores with a cache hint, which has no effect here.

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>

#include "cub/util/operators.cuh"

namespace cub {

enum CacheLoadModifier {
  LOAD_DEFAULT,
  LOAD_CA,
  LOAD_CG,
  LOAD_CS,
  LOAD_CV,
  LOAD_LDG,
  LOAD_VOLATILE
};
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };

template <CacheLoadModifier kModifier = LOAD_DEFAULT, class Iterator>
typename std::iterator_traits<Iterator>::value_type ThreadLoad(Iterator source) {
  return *source;
}
template <CacheStoreModifier kModifier = STORE_DEFAULT, class Iterator, class T>
void ThreadStore(Iterator target, T value) {
  *target = value;
}

namespace detail {

// A random-access iterator over f(0), f(1), ...; `Access` maps an offset to a value.
template <class Value, class Access>
class ComputedIterator {
 public:
  using value_type = Value;
  using reference = Value;
  using pointer = const Value*;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;

  explicit ComputedIterator(Access access, difference_type offset = 0)
      : access_(std::move(access)), offset_(offset) {}
  Value operator*() const { return access_(offset_); }
  template <class Index>
  Value operator[](Index i) const {
    return access_(offset_ + static_cast<difference_type>(i));
  }
  ComputedIterator operator+(difference_type n) const { return moved(n); }
  ComputedIterator operator-(difference_type n) const { return moved(-n); }
  difference_type operator-(const ComputedIterator& other) const { return offset_ - other.offset_; }
  ComputedIterator& operator+=(difference_type n) {
    offset_ += n;
    return *this;
  }
  ComputedIterator& operator++() { return *this += 1; }
  ComputedIterator operator++(int) {
    ComputedIterator before = *this;
    ++offset_;
    return before;
  }
  bool operator==(const ComputedIterator& other) const { return offset_ == other.offset_; }
  bool operator!=(const ComputedIterator& other) const { return offset_ != other.offset_; }

 private:
  ComputedIterator moved(difference_type n) const {
    ComputedIterator copy = *this;
    copy.offset_ += n;
    return copy;
  }

  Access access_;
  difference_type offset_;
};

template <class T>
struct CountFrom {
  T first;
  T operator()(std::ptrdiff_t i) const { return static_cast<T>(first + static_cast<T>(i)); }
};
template <class T>
struct Same {
  T value;
  T operator()(std::ptrdiff_t) const { return value; }
};
template <class T, class Function, class Source>
struct Transformed {
  Source source;
  Function function;
  T operator()(std::ptrdiff_t i) const { return function(source[i]); }
};
template <class Source, class T>
struct Indexed {
  Source source;
  KeyValuePair<std::ptrdiff_t, T> operator()(std::ptrdiff_t i) const { return {i, source[i]}; }
};
template <class T>
struct Pointed {
  const T* source;
  T operator()(std::ptrdiff_t i) const { return source[i]; }
};

}  // namespace detail

template <class T, class Offset = std::ptrdiff_t>
struct CountingInputIterator : detail::ComputedIterator<T, detail::CountFrom<T>> {
  using Base = detail::ComputedIterator<T, detail::CountFrom<T>>;
  CountingInputIterator(const T& first) : Base(detail::CountFrom<T>{first}) {}
};

template <class T, class Offset = std::ptrdiff_t>
struct ConstantInputIterator : detail::ComputedIterator<T, detail::Same<T>> {
  using Base = detail::ComputedIterator<T, detail::Same<T>>;
  ConstantInputIterator(T value, Offset = 0) : Base(detail::Same<T>{value}) {}
};

template <class T, class Function, class Source, class Offset = std::ptrdiff_t>
struct TransformInputIterator
    : detail::ComputedIterator<T, detail::Transformed<T, Function, Source>> {
  using Base = detail::ComputedIterator<T, detail::Transformed<T, Function, Source>>;
  TransformInputIterator(Source source, Function function)
      : Base(detail::Transformed<T, Function, Source>{source, function}) {}
};

template <class Source, class Offset = std::ptrdiff_t,
          class T = typename std::iterator_traits<Source>::value_type>
struct ArgIndexInputIterator
    : detail::ComputedIterator<KeyValuePair<std::ptrdiff_t, T>, detail::Indexed<Source, T>> {
  using Base =
      detail::ComputedIterator<KeyValuePair<std::ptrdiff_t, T>, detail::Indexed<Source, T>>;
  ArgIndexInputIterator(Source source) : Base(detail::Indexed<Source, T>{source}) {}
};

template <CacheLoadModifier kModifier, class T, class Offset = std::ptrdiff_t>
struct CacheModifiedInputIterator : detail::ComputedIterator<T, detail::Pointed<T>> {
  using Base = detail::ComputedIterator<T, detail::Pointed<T>>;
  CacheModifiedInputIterator(const T* source) : Base(detail::Pointed<T>{source}) {}
};

}  // namespace cub

#endif  // MC_EMU_CUB_ITERATOR_ITERATORS_CUH_
