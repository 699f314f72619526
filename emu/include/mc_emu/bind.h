// SPDX-License-Identifier: Apache-2.0
// The part of pybind11's interface that extensions use, over a small C interface.
//
//   PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
//     m.def("scale", &scale, "doc", py::arg("x"), py::arg("factor") = 2.0);
//   }
//
// Serves functions, lambdas and function pointers over tensors, numbers, booleans, strings,
// scalars, dtypes, devices, optionals, vectors, tuples and None.  Classes (py::class_), Python
// objects and NumPy arrays are not served: they do not compile.  pybind11 itself would cost seconds
// for each candidate; this costs milliseconds.
#ifndef MC_EMU_BIND_H_
#define MC_EMU_BIND_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Scalar.h>
#include <c10/util/Exception.h>

#include <array>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mc_emu/bind_abi.h"

namespace mc_emu::bind {

// Thrown when an argument does not convert: the next overload is tried.
struct Mismatch {};

// Converter<T>::load(object) gives a T or throws Mismatch; Converter<T>::store(value) a new object.
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

// Views live as long as the argument, which the caller holds.
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
    at::Scalar scalar;
    require(mc_shim_to_scalar(object, &scalar));
    return scalar;
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
    return bind::load<T>(object);
  }
  static McShimObject* store(const std::optional<T>& value) {
    return value.has_value() ? bind::store(*value) : mc_shim_from_none();
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
      values.push_back(bind::load<T>(mc_shim_sequence_item(object, i)));
    }
    return values;
  }
  static McShimObject* store(const std::vector<T>& values) {
    McShimObject* list = mc_shim_list_new(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      mc_shim_list_set(list, i, bind::store(static_cast<const T&>(values[i])));
    }
    return list;
  }
};

template <class T, size_t kSize>
struct Converter<std::array<T, kSize>> {
  static std::array<T, kSize> load(McShimObject* object) {
    const std::vector<T> values = bind::load<std::vector<T>>(object);
    require(values.size() == kSize);
    std::array<T, kSize> result;
    std::copy(values.begin(), values.end(), result.begin());
    return result;
  }
  static McShimObject* store(const std::array<T, kSize>& values) {
    return bind::store(std::vector<T>(values.begin(), values.end()));
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
  static OwnedArray<T> load(McShimObject* object) { return {bind::load<std::vector<T>>(object)}; }
  static McShimObject* store(c10::ArrayRef<T> values) { return bind::store(values.vec()); }
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
    return {bind::load<T>(mc_shim_sequence_item(object, kIndex))...};
  }
  template <size_t... kIndex>
  static McShimObject* store_items(const std::tuple<T...>& values, std::index_sequence<kIndex...>) {
    McShimObject* tuple = mc_shim_tuple_new(sizeof...(T));
    (mc_shim_tuple_set(tuple, kIndex, bind::store(std::get<kIndex>(values))), ...);
    return tuple;
  }
};

template <class A, class B>
struct Converter<std::pair<A, B>> {
  static std::pair<A, B> load(McShimObject* object) {
    auto both = bind::load<std::tuple<A, B>>(object);
    return {std::get<0>(both), std::get<1>(both)};
  }
  static McShimObject* store(const std::pair<A, B>& both) {
    return bind::store(std::tuple<A, B>(both.first, both.second));
  }
};

// --- Parameters.

struct None {};  // py::none()

struct Argument {
  const char* name;
  bool has_default = false;
  std::function<McShimObject*()> make_default;  // A new object.

  explicit Argument(const char* n) : name(n) {}
  template <class T>
  Argument operator=(T value) const {
    Argument copy(name);
    copy.has_default = true;
    if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, std::nullptr_t> ||
                  std::is_same_v<T, None>) {
      copy.make_default = [] { return mc_shim_from_none(); };
    } else if constexpr (std::is_same_v<T, at::ScalarType> || std::is_same_v<T, c10::Device>) {
      static_assert(!sizeof(T*), "defaults of this type are not supported");
    } else {
      copy.make_default = [value] { return bind::store(value); };
    }
    return copy;
  }
  Argument noconvert(bool = true) const { return *this; }
  Argument none(bool = true) const { return *this; }
};

// --- Functions.

template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... P>
struct Signature<R (*)(P...)> {
  using Result = R;
  using Parameters = std::tuple<std::decay_t<P>...>;
};
template <class R, class... P>
struct Signature<R (*)(P...) noexcept> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...) const> : Signature<R (*)(P...)> {};
template <class C, class R, class... P>
struct Signature<R (C::*)(P...)> : Signature<R (*)(P...)> {};

// What the exception in flight means to Python.
inline void set_current_error() {
  try {
    throw;
  } catch (const c10::IndexError& e) {
    mc_shim_set_error(kMcShimIndex, e.what_without_backtrace());
  } catch (const c10::ValueError& e) {
    mc_shim_set_error(kMcShimValue, e.what_without_backtrace());
  } catch (const c10::TypeError& e) {
    mc_shim_set_error(kMcShimType, e.what_without_backtrace());
  } catch (const c10::NotImplementedError& e) {
    mc_shim_set_error(kMcShimNotImplemented, e.what_without_backtrace());
  } catch (const c10::Error& e) {
    mc_shim_set_error(kMcShimRuntime, e.what_without_backtrace());
  } catch (const std::bad_alloc& e) {
    mc_shim_set_error(kMcShimMemory, e.what());
  } catch (const std::invalid_argument& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::domain_error& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::out_of_range& e) {
    mc_shim_set_error(kMcShimIndex, e.what());
  } catch (const std::exception& e) {
    mc_shim_set_error(kMcShimRuntime, e.what());
  } catch (...) {
    mc_shim_set_error(kMcShimRuntime, "a C++ exception of unknown type");
  }
}

template <class F>
struct Bound {
  F function;
  std::vector<Argument> arguments;

  using Result = typename Signature<F>::Result;
  using Parameters = typename Signature<F>::Parameters;
  static constexpr size_t kCount = std::tuple_size_v<Parameters>;

  static McShimObject* call(void* closure, McShimObject* const* given, int* mismatch) {
    return static_cast<Bound*>(closure)->invoke(given, mismatch,
                                                std::make_index_sequence<kCount>());
  }

 private:
  template <size_t... kIndex>
  McShimObject* invoke(McShimObject* const* given, int* mismatch, std::index_sequence<kIndex...>) {
    *mismatch = 0;
    try {
      // Braces: converted from left to right.
      auto values = std::tuple<decltype(load_at<kIndex>(given))...>{load_at<kIndex>(given)...};
      return run(values, std::index_sequence<kIndex...>());
    } catch (const Mismatch&) {
      *mismatch = 1;
    } catch (...) {
      set_current_error();
    }
    return nullptr;
  }

  template <size_t kIndex>
  auto load_at(McShimObject* const* given) {
    using T = std::tuple_element_t<kIndex, Parameters>;
    if (given[kIndex] != nullptr) return Converter<T>::load(given[kIndex]);
    if (kIndex >= arguments.size() || !arguments[kIndex].has_default) throw Mismatch();
    struct Holder {
      McShimObject* object;
      ~Holder() { mc_shim_release(object); }
    } holder{arguments[kIndex].make_default()};
    return Converter<T>::load(holder.object);
  }

  template <class Values, size_t... kIndex>
  McShimObject* run(Values& values, std::index_sequence<kIndex...>) {
    if constexpr (std::is_void_v<Result>) {
      function(std::get<kIndex>(values)...);
      return mc_shim_from_none();
    } else {
      return Converter<std::decay_t<Result>>::store(function(std::get<kIndex>(values)...));
    }
  }
};

}  // namespace mc_emu::bind

namespace pybind11 {

using arg = mc_emu::bind::Argument;

struct gil_scoped_release {};
struct gil_scoped_acquire {};
template <class... Guards>
struct call_guard {};
struct kw_only {};
using none = mc_emu::bind::None;
struct pos_only {};
enum class return_value_policy { automatic, copy, move, reference, take_ownership };

namespace literals {
inline arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

template <class... P>
struct overload_cast_impl {
  template <class R>
  constexpr auto operator()(R (*function)(P...)) const -> decltype(function) {
    return function;
  }
};
template <class... P>
inline constexpr overload_cast_impl<P...> overload_cast{};

class module_ {
 public:
  explicit module_(McShimObject* object) : object_(object) {}

  template <class F, class... Extra>
  module_& def(const char* name, F&& function, const Extra&... extra) {
    using Function = std::decay_t<F>;
    // Lives as long as the process, as the module does.
    auto* bound = new mc_emu::bind::Bound<Function>{std::forward<F>(function), {}};
    const char* doc = "";
    (add_extra(extra, &doc, &bound->arguments), ...);
    constexpr size_t kCount = mc_emu::bind::Bound<Function>::kCount;
    std::vector<McShimParameter> parameters(kCount, McShimParameter{nullptr, 0});
    for (size_t i = 0; i < kCount && i < bound->arguments.size(); ++i) {
      parameters[i] = {bound->arguments[i].name, bound->arguments[i].has_default};
    }
    const McShimFunction description{name,
                                     doc,
                                     name,
                                     &mc_emu::bind::Bound<Function>::call,
                                     bound,
                                     parameters.data(),
                                     static_cast<int>(kCount)};
    if (mc_shim_module_def(object_, &description) == 0) throw std::runtime_error("cannot bind");
    return *this;
  }

  class Attribute {
   public:
    Attribute(McShimObject* module, const char* name) : module_object_(module), name_(name) {}
    template <class T>
    void operator=(const T& value) {
      mc_shim_module_set(module_object_, name_.c_str(), mc_emu::bind::store(value));
    }
    void operator=(const char* text) {
      mc_shim_module_set(module_object_, name_.c_str(), mc_emu::bind::store(std::string(text)));
    }

   private:
    McShimObject* module_object_;
    std::string name_;
  };
  Attribute attr(const char* name) { return Attribute(object_, name); }

  // m.doc() = "text"
  class Doc {
   public:
    explicit Doc(McShimObject* module) : module_object_(module) {}
    void operator=(const char* text) { mc_shim_module_doc(module_object_, text); }

   private:
    McShimObject* module_object_;
  };
  Doc doc() { return Doc(object_); }

  McShimObject* ptr() const { return object_; }

 private:
  static void add_extra(const char* text, const char** doc, std::vector<arg>*) { *doc = text; }
  static void add_extra(const arg& argument, const char**, std::vector<arg>* arguments) {
    arguments->push_back(argument);
  }
  template <class Other>
  static void add_extra(const Other&, const char**, std::vector<arg>*) {}

  McShimObject* object_;
};
using module = module_;

}  // namespace pybind11

namespace py = pybind11;

namespace torch {
template <class F>
inline F wrap_pybind_function(F function) {
  return function;
}
}  // namespace torch

namespace mc_emu::bind {
inline void* make_module(const char* name, void (*init)(pybind11::module_&)) {
  McShimObject* object = mc_shim_module_new(name);
  if (object == nullptr) return nullptr;
  try {
    pybind11::module_ module(object);
    init(module);
    return object;
  } catch (...) {
    set_current_error();
    mc_shim_release(object);
    return nullptr;
  }
}
}  // namespace mc_emu::bind

#define MC_EMU_TEXT_OF(name) #name
#define PYBIND11_MODULE(name, variable, ...)                     \
  static void mc_emu_init_module(::pybind11::module_& variable); \
  MC_EMU_DEFINE_INIT(name)                                       \
  static void mc_emu_init_module([[maybe_unused]] ::pybind11::module_& variable)
#define MC_EMU_DEFINE_INIT(name)                                                   \
  extern "C" __attribute__((visibility("default"))) void* PyInit_##name() {        \
    return ::mc_emu::bind::make_module(MC_EMU_TEXT_OF(name), &mc_emu_init_module); \
  }

#endif  // MC_EMU_BIND_H_
