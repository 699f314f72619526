// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_DETAIL_ITERATORS_H_
#define MC_EMU_THRUST_DETAIL_ITERATORS_H_

// Thrust's iterators that calculate: counting, constant, transformed and zipped.

#include "thrust/detail/device.h"

namespace thrust {
namespace detail {

// The operations of every iterator that can say its element at a distance: `at(i)` of Derived.
template <class Derived, class Value>
class Calculated {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::decay_t<Value>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Value;

  Value operator*() const { return self().at(offset_); }
  Value operator[](difference_type i) const { return self().at(offset_ + i); }
  Derived& operator+=(difference_type i) { return offset_ += i, self(); }
  Derived& operator-=(difference_type i) { return offset_ -= i, self(); }
  Derived& operator++() { return *this += 1; }
  Derived& operator--() { return *this -= 1; }
  Derived operator++(int) {
    Derived before = self();
    ++*this;
    return before;
  }
  friend Derived operator+(Derived it, difference_type i) { return it += i; }
  friend Derived operator+(difference_type i, Derived it) { return it += i; }
  friend Derived operator-(Derived it, difference_type i) { return it -= i; }
  friend difference_type operator-(const Derived& a, const Derived& b) {
    return a.position() - b.position();
  }
  friend bool operator==(const Derived& a, const Derived& b) { return a - b == 0; }
  friend bool operator!=(const Derived& a, const Derived& b) { return a - b != 0; }
  friend bool operator<(const Derived& a, const Derived& b) { return a - b < 0; }

 protected:
  difference_type offset_ = 0;

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

}  // namespace detail

template <class T>
class counting_iterator : public detail::Calculated<counting_iterator<T>, T> {
 public:
  explicit counting_iterator(T first = T()) : first_(first) {}
  T at(std::ptrdiff_t i) const { return static_cast<T>(first_ + i); }
  std::ptrdiff_t position() const { return static_cast<std::ptrdiff_t>(first_) + this->offset_; }

 private:
  T first_;
};
template <class T>
counting_iterator<T> make_counting_iterator(T first) {
  return counting_iterator<T>(first);
}

template <class T>
class constant_iterator : public detail::Calculated<constant_iterator<T>, T> {
 public:
  explicit constant_iterator(T value, std::ptrdiff_t offset = 0) : value_(value) {
    this->offset_ = offset;
  }
  T at(std::ptrdiff_t) const { return value_; }
  std::ptrdiff_t position() const { return this->offset_; }

 private:
  T value_;
};
template <class T>
constant_iterator<T> make_constant_iterator(T value) {
  return constant_iterator<T>(value);
}

template <class Function, class Base>
class transform_iterator
    : public detail::Calculated<
          transform_iterator<Function, Base>,
          std::invoke_result_t<Function, typename std::iterator_traits<Base>::value_type>> {
 public:
  using mc_emu_base = Base;
  transform_iterator(Base base, Function function) : base_(base), function_(function) {}
  auto at(std::ptrdiff_t i) const {
    return function_(static_cast<typename std::iterator_traits<Base>::value_type>(base_[i]));
  }
  std::ptrdiff_t position() const { return (base_ - Base()) + this->offset_; }

 private:
  Base base_;
  Function function_;
};
template <class Function, class Base>
transform_iterator<Function, Base> make_transform_iterator(Base base, Function function) {
  return {base, function};
}

template <class... Bases>
class zip_iterator;
template <class First, class... Rest>
class zip_iterator<tuple<First, Rest...>>
    : public detail::Calculated<zip_iterator<tuple<First, Rest...>>,
                                tuple<typename std::iterator_traits<First>::reference,
                                      typename std::iterator_traits<Rest>::reference...>> {
 public:
  using mc_emu_base = First;
  explicit zip_iterator(tuple<First, Rest...> bases) : bases_(bases) {}
  auto at(std::ptrdiff_t i) const {
    return std::apply(
        [i](const auto&... base) {
          return tuple<typename std::iterator_traits<First>::reference,
                       typename std::iterator_traits<Rest>::reference...>(base[i]...);
        },
        bases_);
  }
  std::ptrdiff_t position() const { return (std::get<0>(bases_) - First()) + this->offset_; }

 private:
  tuple<First, Rest...> bases_;
};
template <class... Bases>
zip_iterator<tuple<Bases...>> make_zip_iterator(tuple<Bases...> bases) {
  return zip_iterator<tuple<Bases...>>(bases);
}
template <class... Bases>
zip_iterator<tuple<Bases...>> make_zip_iterator(Bases... bases) {
  return zip_iterator<tuple<Bases...>>(tuple<Bases...>(bases...));
}
using std::get;

}  // namespace thrust

#endif  // MC_EMU_THRUST_DETAIL_ITERATORS_H_
