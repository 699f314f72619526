// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_DETAIL_DEVICE_H_
#define MC_EMU_THRUST_DETAIL_DEVICE_H_

// Thrust's memory and where its algorithms run: policies, device_ptr, device_vector, host_vector.
//
// An algorithm runs on the device, as a launch of one thread, where its policy or an iterator says
// so, and in place where it is called by a kernel or is the host's.  One element of device memory
// is copied for each access by the host, as in Thrust.

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "cub/util/standard.cuh"
#include "cuda_runtime.h"

namespace thrust {

struct mc_emu_host_policy {};
struct mc_emu_device_policy {
  mc_emu_device_policy on(cudaStream_t) const { return {}; }
  template <class Allocator>
  mc_emu_device_policy operator()(Allocator&&) const {
    return {};
  }
};
inline constexpr mc_emu_host_policy host, seq;
inline constexpr mc_emu_device_policy device;
namespace cuda {
inline constexpr mc_emu_device_policy par, par_nosync;
}

template <class T>
class device_reference {
 public:
  using value_type = std::remove_cv_t<T>;
  explicit device_reference(T* pointer) : pointer_(pointer) {}
  device_reference(const device_reference&) = default;
  operator value_type() const {
    if (mc_emu_in_kernel()) return *pointer_;
    value_type value;
    cudaMemcpy(&value, pointer_, sizeof(T), cudaMemcpyDeviceToHost);
    return value;
  }
  const device_reference& operator=(const value_type& value) const {
    if (mc_emu_in_kernel()) {
      *const_cast<value_type*>(pointer_) = value;
    } else {
      cudaMemcpy(const_cast<value_type*>(pointer_), &value, sizeof(T), cudaMemcpyHostToDevice);
    }
    return *this;
  }
  const device_reference& operator=(const device_reference& other) const {
    return *this = static_cast<value_type>(other);
  }
  const device_reference& operator+=(const value_type& value) const {
    return *this = static_cast<value_type>(*this) + value;
  }

 private:
  T* pointer_;
};

template <class T>
class device_ptr {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr;
  using reference = device_reference<T>;

  device_ptr() = default;
  device_ptr(std::nullptr_t) {}
  explicit device_ptr(T* raw) : pointer_(raw) {}
  template <class U, std::enable_if_t<std::is_convertible_v<U*, T*>, int> = 0>
  device_ptr(const device_ptr<U>& other) : pointer_(other.get()) {}

  T* get() const { return pointer_; }
  reference operator*() const { return reference(pointer_); }
  reference operator[](difference_type i) const { return reference(pointer_ + i); }
  device_ptr& operator+=(difference_type i) { return pointer_ += i, *this; }
  device_ptr& operator-=(difference_type i) { return pointer_ -= i, *this; }
  device_ptr& operator++() { return ++pointer_, *this; }
  device_ptr& operator--() { return --pointer_, *this; }
  device_ptr operator++(int) { return device_ptr(pointer_++); }
  device_ptr operator--(int) { return device_ptr(pointer_--); }
  friend device_ptr operator+(device_ptr p, difference_type i) { return p += i; }
  friend device_ptr operator+(difference_type i, device_ptr p) { return p += i; }
  friend device_ptr operator-(device_ptr p, difference_type i) { return p -= i; }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.pointer_ - b.pointer_; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.pointer_ == b.pointer_; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.pointer_ != b.pointer_; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.pointer_ < b.pointer_; }

 private:
  T* pointer_ = nullptr;
};

template <class T>
device_ptr<T> device_pointer_cast(T* pointer) {
  return device_ptr<T>(pointer);
}
template <class T>
device_ptr<T> device_pointer_cast(const device_ptr<T>& pointer) {
  return pointer;
}
template <class T>
T* raw_pointer_cast(T* pointer) {
  return pointer;
}
template <class T>
T* raw_pointer_cast(const device_ptr<T>& pointer) {
  return pointer.get();
}

template <class T>
using host_vector = std::vector<T>;

// In device memory; elements are trivial.
template <class T>
class device_vector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;
  using pointer = device_ptr<T>;
  using reference = device_reference<T>;

  device_vector() = default;
  explicit device_vector(size_type size, const T& value = T()) { resize(size, value); }
  device_vector(const device_vector& other) { take(other.data().get(), other.size()); }
  device_vector(device_vector&& other) noexcept { swap(other); }
  device_vector(const std::vector<T>& values) { take(values.data(), values.size()); }
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  device_vector(Iterator first, Iterator last) {
    if constexpr (std::is_pointer_v<Iterator>) {
      take(first, static_cast<size_type>(last - first));
    } else if constexpr (std::is_same_v<Iterator, iterator> ||
                         std::is_same_v<Iterator, const_iterator>) {
      take(first.get(), static_cast<size_type>(last - first));
    } else {
      const std::vector<T> values(first, last);
      take(values.data(), values.size());
    }
  }
  ~device_vector() { cudaFree(data_); }
  device_vector& operator=(device_vector other) { return swap(other), *this; }

  void swap(device_vector& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  void resize(size_type size, const T& value = T()) {
    T* data = nullptr;
    cudaMalloc(&data, size * sizeof(T));
    const size_type kept = size < size_ ? size : size_;
    if (kept != 0) cudaMemcpy(data, data_, kept * sizeof(T), cudaMemcpyDeviceToDevice);
    const std::vector<T> rest(size - kept, value);
    if (!rest.empty()) {
      cudaMemcpy(data + kept, rest.data(), rest.size() * sizeof(T), cudaMemcpyHostToDevice);
    }
    cudaFree(data_);
    data_ = data;
    size_ = size;
  }
  void clear() { size_ = 0; }
  void push_back(const T& value) { resize(size_ + 1, value); }
  size_type size() const { return size_; }
  bool empty() const { return size_ == 0; }
  pointer data() { return pointer(data_); }
  const_iterator data() const { return const_iterator(data_); }
  iterator begin() { return iterator(data_); }
  iterator end() { return iterator(data_ + size_); }
  const_iterator begin() const { return const_iterator(data_); }
  const_iterator end() const { return const_iterator(data_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reference operator[](size_type i) { return reference(data_ + i); }
  T operator[](size_type i) const { return device_reference<const T>(data_ + i); }
  reference front() { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  operator std::vector<T>() const {
    std::vector<T> values(size_);
    if (size_ != 0) cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

 private:
  void take(const T* from, size_type size) {
    cudaMalloc(&data_, size * sizeof(T));
    size_ = size;
    if (size != 0) cudaMemcpy(data_, from, size * sizeof(T), cudaMemcpyDefault);
  }

  T* data_ = nullptr;
  size_type size_ = 0;
};

namespace detail {

// True if an iterator points into device memory by its type.
template <class Iterator, class = void>
struct IsDevice : std::false_type {};
template <class T>
struct IsDevice<device_ptr<T>> : std::true_type {};
template <class Iterator>
struct IsDevice<Iterator, std::void_t<typename Iterator::mc_emu_base>>
    : IsDevice<typename Iterator::mc_emu_base> {};

// The iterators that an algorithm works on: plain pointers for pointers.
template <class Iterator>
Iterator plain(Iterator iterator) {
  return iterator;
}
template <class T>
T* plain(device_ptr<T> pointer) {
  return pointer.get();
}

template <class T>
inline constexpr bool is_policy = std::is_same_v<std::decay_t<T>, mc_emu_host_policy> ||
                                  std::is_same_v<std::decay_t<T>, mc_emu_device_policy>;

// Runs `body` where it is to run, and gives its result.
template <class Body>
auto run(bool on_device, Body body) -> decltype(body()) {
  using Result = decltype(body());
  if (!on_device || mc_emu_in_kernel()) return body();
  const ::mc_emu::Config one(dim3(1), dim3(1));
  if constexpr (std::is_void_v<Result>) {
    ::mc_emu::launch(one, "thrust", [](Body work) { work(); }, body);
  } else {
    Result* room = nullptr;
    cudaMalloc(&room, sizeof(Result));
    ::mc_emu::launch(one, "thrust", [](Body work, Result* to) { *to = work(); }, body, room);
    alignas(Result) unsigned char bytes[sizeof(Result)];
    cudaMemcpy(bytes, room, sizeof(Result), cudaMemcpyDeviceToHost);
    cudaFree(room);
    return *reinterpret_cast<Result*>(bytes);
  }
}

}  // namespace detail

}  // namespace thrust

#endif  // MC_EMU_THRUST_DETAIL_DEVICE_H_
