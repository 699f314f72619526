// SPDX-License-Identifier: Apache-2.0
// Converts the arguments and results of extensions from and to Python objects.
#ifndef MC_BIND_CONVERT_H_
#define MC_BIND_CONVERT_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mc_bind/bind_abi.h"

namespace mc_bind {

// Thrown when an argument does not convert: the next overload is tried.
struct Mismatch {};

// Converter<T>::load(object) returns a T or throws Mismatch; store(value) returns a new object.
template <class T, class = void>
struct Converter;

template <class T>
T load(McShimObject* object) {
  return Converter<T>::load(object);
}
template <class T>
McShimObject* store(const T& value) {
  return Converter<T>::store(value);
}

inline void require(int converted) {
  if (converted == 0) throw Mismatch();
}

template <>
struct Converter<at::Tensor> {
  static at::Tensor load(McShimObject* object) {
    at::Tensor tensor;
    require(mc_shim_to_tensor(object, &tensor));
    return tensor;
  }
  static McShimObject* store(const at::Tensor& tensor) { return mc_shim_from_tensor(&tensor); }
};

template <>
struct Converter<bool> {
  static bool load(McShimObject* object) {
    int value = 0;
    require(mc_shim_to_bool(object, &value));
    return value != 0;
  }
  static McShimObject* store(bool value) { return mc_shim_from_bool(value); }
};

template <class T>
struct Converter<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static T load(McShimObject* object) {
    int64_t value = 0;
    require(mc_shim_to_int(object, &value));
    const T narrow = static_cast<T>(value);
    require(static_cast<int64_t>(narrow) == value);
    return narrow;
  }
  static McShimObject* store(T value) { return mc_shim_from_int(static_cast<int64_t>(value)); }
};

template <class T>
struct Converter<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static T load(McShimObject* object) {
    double value = 0;
    require(mc_shim_to_double(object, &value));
    return static_cast<T>(value);
  }
  static McShimObject* store(T value) { return mc_shim_from_double(static_cast<double>(value)); }
};

template <>
struct Converter<std::string> {
  static std::string load(McShimObject* object) {
    const char* text = nullptr;
    size_t size = 0;
    require(mc_shim_to_string(object, &text, &size));
    return std::string(text, size);
  }
  static McShimObject* store(const std::string& text) {
    return mc_shim_from_string(text.data(), text.size());
  }
};

// Views are valid as long as the argument, which the caller owns.
template <>
struct Converter<std::string_view> {
  static std::string_view load(McShimObject* object) {
    const char* text = nullptr;
    size_t size = 0;
    require(mc_shim_to_string(object, &text, &size));
    return std::string_view(text, size);
  }
};
template <>
struct Converter<const char*> {
  static const char* load(McShimObject* object) {
    const char* text = nullptr;
    size_t size = 0;
    require(mc_shim_to_string(object, &text, &size));
    return text;
  }
  static McShimObject* store(const char* text) {
    return mc_shim_from_string(text, std::string_view(text).size());
  }
};

template <>
struct Converter<at::Scalar> {
  static at::Scalar load(McShimObject* object) {
    McShimNumber number;
    require(mc_shim_to_number(object, &number));
    if (number.kind == kMcShimBool) return at::Scalar(number.integer != 0);
    if (number.kind == kMcShimInt) return at::Scalar(number.integer);
    return at::Scalar(number.real);
  }
  static McShimObject* store(const at::Scalar& scalar) {
    if (scalar.isBoolean()) return mc_shim_from_bool(scalar.toBool());
    if (scalar.isIntegral(false)) return mc_shim_from_int(scalar.toLong());
    return mc_shim_from_double(scalar.toDouble());
  }
};

template <>
struct Converter<at::ScalarType> {
  static at::ScalarType load(McShimObject* object) {
    int dtype = 0;
    require(mc_shim_to_dtype(object, &dtype));
    return static_cast<at::ScalarType>(dtype);
  }
};

template <>
struct Converter<c10::Device> {
  static c10::Device load(McShimObject* object) {
    int type = 0;
    int index = 0;
    require(mc_shim_to_device(object, &type, &index));
    return c10::Device(static_cast<c10::DeviceType>(type), static_cast<c10::DeviceIndex>(index));
  }
};

template <class T>
struct Converter<std::optional<T>> {
  static std::optional<T> load(McShimObject* object) {
    if (mc_shim_is_none(object) != 0) return std::nullopt;
    return mc_bind::load<T>(object);
  }
  static McShimObject* store(const std::optional<T>& value) {
    return value.has_value() ? mc_bind::store(*value) : mc_shim_from_none();
  }
};

template <class T>
struct Converter<std::vector<T>> {
  static std::vector<T> load(McShimObject* object) {
    const ptrdiff_t size = mc_shim_sequence_size(object);
    require(size >= 0);
    std::vector<T> values;
    values.reserve(static_cast<size_t>(size));
    for (ptrdiff_t i = 0; i < size; ++i) {
      values.push_back(mc_bind::load<T>(mc_shim_sequence_item(object, i)));
    }
    return values;
  }
  static McShimObject* store(const std::vector<T>& values) {
    McShimObject* list = mc_shim_list_new(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      mc_shim_list_set(list, i, mc_bind::store(static_cast<const T&>(values[i])));
    }
    return list;
  }
};

template <class T, size_t kSize>
struct Converter<std::array<T, kSize>> {
  static std::array<T, kSize> load(McShimObject* object) {
    const std::vector<T> values = mc_bind::load<std::vector<T>>(object);
    require(values.size() == kSize);
    std::array<T, kSize> result;
    std::copy(values.begin(), values.end(), result.begin());
    return result;
  }
  static McShimObject* store(const std::array<T, kSize>& values) {
    return mc_bind::store(std::vector<T>(values.begin(), values.end()));
  }
};

// An ArrayRef argument owns its elements until the call is over.
template <class T>
struct OwnedArray {
  std::vector<T> values;
  operator c10::ArrayRef<T>() const { return values; }
};
template <class T>
struct Converter<c10::ArrayRef<T>> {
  static OwnedArray<T> load(McShimObject* object) {
    return {mc_bind::load<std::vector<T>>(object)};
  }
  static McShimObject* store(c10::ArrayRef<T> values) { return mc_bind::store(values.vec()); }
};

template <class... T>
struct Converter<std::tuple<T...>> {
  static std::tuple<T...> load(McShimObject* object) {
    require(mc_shim_sequence_size(object) == static_cast<ptrdiff_t>(sizeof...(T)));
    return load_items(object, std::index_sequence_for<T...>());
  }
  static McShimObject* store(const std::tuple<T...>& values) {
    return store_items(values, std::index_sequence_for<T...>());
  }

 private:
  template <size_t... kIndex>
  static std::tuple<T...> load_items(McShimObject* object, std::index_sequence<kIndex...>) {
    return {mc_bind::load<T>(mc_shim_sequence_item(object, kIndex))...};
  }
  template <size_t... kIndex>
  static McShimObject* store_items(const std::tuple<T...>& values, std::index_sequence<kIndex...>) {
    McShimObject* tuple = mc_shim_tuple_new(sizeof...(T));
    (mc_shim_tuple_set(tuple, kIndex, mc_bind::store(std::get<kIndex>(values))), ...);
    return tuple;
  }
};

template <class A, class B>
struct Converter<std::pair<A, B>> {
  static std::pair<A, B> load(McShimObject* object) {
    auto both = mc_bind::load<std::tuple<A, B>>(object);
    return {std::get<0>(both), std::get<1>(both)};
  }
  static McShimObject* store(const std::pair<A, B>& both) {
    return mc_bind::store(std::tuple<A, B>(both.first, both.second));
  }
};

}  // namespace mc_bind

#endif  // MC_BIND_CONVERT_H_
