// SPDX-License-Identifier: Apache-2.0
// The part of pybind11's interface that extensions use, over a small C interface.
//
//   PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
//     m.def("scale", &scale, "doc", py::arg("x"), py::arg("factor") = 2.0);
//   }
//
// Supports functions, lambdas and function pointers over tensors, numbers, booleans, strings,
// scalars, dtypes, devices, optionals, vectors, tuples and None.  Classes (py::class_), Python
// objects and NumPy arrays are unsupported: they do not compile.  pybind11 itself takes seconds to
// compile for each candidate; this header takes milliseconds.
#ifndef MC_BIND_H_
#define MC_BIND_H_

#include <c10/core/Device.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "mc_bind/bind_convert.h"

namespace mc_bind {

// --- Parameters.

struct None {};  // The type of py::none().

struct Argument {
  const char* name;
  bool has_default = false;
  McShimObject* default_object = nullptr;  // Lives as long as the process.

  explicit Argument(const char* n) : name(n) {}
  template <class T>
  Argument operator=(const T& value) const {
    Argument copy(name);
    copy.has_default = true;
    if constexpr (std::is_same_v<T, std::nullopt_t> || std::is_same_v<T, std::nullptr_t> ||
                  std::is_same_v<T, None>) {
      copy.default_object = mc_shim_from_none();
    } else if constexpr (std::is_same_v<T, at::ScalarType> || std::is_same_v<T, c10::Device>) {
      static_assert(!sizeof(T*), "defaults of this type are not supported");
    } else {
      copy.default_object = mc_bind::store(static_cast<const std::decay_t<const T&>&>(value));
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
      // Braces convert the arguments from left to right.
      auto values = std::tuple<decltype(load_at<kIndex>(given))...>{load_at<kIndex>(given)...};
      return run(values, std::index_sequence<kIndex...>());
    } catch (const Mismatch&) {
      *mismatch = 1;
    } catch (...) {
      mc_shim_set_current_error();
    }
    return nullptr;
  }

  template <size_t kIndex>
  auto load_at(McShimObject* const* given) {
    using T = std::tuple_element_t<kIndex, Parameters>;
    if (given[kIndex] != nullptr) return Converter<T>::load(given[kIndex]);
    if (kIndex >= arguments.size() || !arguments[kIndex].has_default) throw Mismatch();
    return Converter<T>::load(arguments[kIndex].default_object);
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

}  // namespace mc_bind

namespace pybind11 {

using arg = mc_bind::Argument;

struct gil_scoped_release {};
struct gil_scoped_acquire {};
template <class... Guards>
struct call_guard {};
struct kw_only {};
using none = mc_bind::None;
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
    auto* bound = new mc_bind::Bound<Function>{std::forward<F>(function), {}};
    const char* doc = "";
    (add_extra(extra, &doc, &bound->arguments), ...);
    constexpr size_t kCount = mc_bind::Bound<Function>::kCount;
    std::vector<McShimParameter> parameters(kCount, McShimParameter{nullptr, 0});
    for (size_t i = 0; i < kCount && i < bound->arguments.size(); ++i) {
      parameters[i] = {bound->arguments[i].name, bound->arguments[i].has_default};
    }
    const McShimFunction description{name,
                                     doc,
                                     name,
                                     &mc_bind::Bound<Function>::call,
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
      mc_shim_module_set(module_object_, name_.c_str(), mc_bind::store(value));
    }
    void operator=(const char* text) {
      mc_shim_module_set(module_object_, name_.c_str(), mc_bind::store(std::string(text)));
    }

   private:
    McShimObject* module_object_;
    std::string name_;
  };
  Attribute attr(const char* name) { return Attribute(object_, name); }

  // The statement m.doc() = "text".
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

namespace mc_bind {
inline void* make_module(const char* name, void (*init)(pybind11::module_&)) {
  McShimObject* object = mc_shim_module_new(name);
  if (object == nullptr) return nullptr;
  try {
    pybind11::module_ module(object);
    init(module);
    return object;
  } catch (...) {
    mc_shim_set_current_error();
    mc_shim_release(object);
    return nullptr;
  }
}
}  // namespace mc_bind

#define MC_BIND_TEXT_OF(name) #name
#define PYBIND11_MODULE(name, variable, ...)                      \
  static void mc_bind_init_module(::pybind11::module_& variable); \
  MC_BIND_DEFINE_INIT(name)                                       \
  static void mc_bind_init_module([[maybe_unused]] ::pybind11::module_& variable)
#define MC_BIND_DEFINE_INIT(name)                                               \
  extern "C" __attribute__((visibility("default"))) void* PyInit_##name() {     \
    return ::mc_bind::make_module(MC_BIND_TEXT_OF(name), &mc_bind_init_module); \
  }

#endif  // MC_BIND_H_
