// SPDX-License-Identifier: Apache-2.0
// Checks and their messages.  Text is built without streams, whose headers compile slowly.
#ifndef MC_AT_CHECK_H_
#define MC_AT_CHECK_H_

#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "mc_at/types.h"

#define C10_LIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 1))
#define C10_UNLIKELY(condition) (__builtin_expect(static_cast<bool>(condition), 0))

namespace c10 {

#pragma GCC visibility push(default)
// PyTorch's exception, which the runtime throws: code here can catch and query it, not create it.
class Error : public std::exception {
 public:
  Error() = delete;
  const char* what() const noexcept override;
  virtual const char* what_without_backtrace() const noexcept;
};
class IndexError : public Error {
  const char* what() const noexcept override;
};
class ValueError : public Error {
  const char* what() const noexcept override;
};
class TypeError : public Error {
  const char* what() const noexcept override;
};
class NotImplementedError : public Error {
  const char* what() const noexcept override;
};
#pragma GCC visibility pop

namespace mc_at {

inline void add(std::string& text, const char* part) { text += part; }
inline void add(std::string& text, const std::string& part) { text += part; }
inline void add(std::string& text, std::string_view part) { text += part; }
inline void add(std::string& text, char part) { text += part; }
inline void add(std::string& text, signed char part) { text += static_cast<char>(part); }
inline void add(std::string& text, unsigned char part) { text += static_cast<char>(part); }
inline void add(std::string& text, bool part) { text += part ? '1' : '0'; }
inline void add(std::string& text, int part) { text += std::to_string(part); }
inline void add(std::string& text, long part) { text += std::to_string(part); }
inline void add(std::string& text, long long part) { text += std::to_string(part); }
inline void add(std::string& text, unsigned part) { text += std::to_string(part); }
inline void add(std::string& text, unsigned long part) { text += std::to_string(part); }
inline void add(std::string& text, unsigned long long part) { text += std::to_string(part); }
inline void add(std::string& text, double part) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%g", part);
  text += digits;
}
inline void add(std::string& text, ScalarType part) { text += toString(part); }
inline void add(std::string& text, caffe2::TypeMeta part) { text += part.name(); }
inline void add(std::string& text, const Device& part) { text += part.str(); }
inline void add(std::string& text, DeviceType part) {
  std::string name = Device(part).str();
  text += name;
}
template <class T>
void add_all(std::string& text, const T* begin, const T* end) {
  text += '[';
  for (const T* item = begin; item != end; ++item) {
    if (item != begin) text += ", ";
    add(text, *item);
  }
  text += ']';
}
template <class T>
void add(std::string& text, ArrayRef<T> part) {
  add_all(text, part.begin(), part.end());
}
template <class T>
void add(std::string& text, const std::vector<T>& part) {
  add_all(text, part.data(), part.data() + part.size());
}

}  // namespace mc_at

template <class... T>
std::string str(const T&... parts) {
  std::string text;
  (mc_at::add(text, parts), ...);
  return text;
}

namespace mc_at {
template <class... T>
std::string message(const char*, const T&... parts) {
  return str(parts...);
}
inline const char* message(const char* of_none) { return of_none; }
inline const char* message(const char*, const char* text) { return text; }

[[noreturn]] inline void fail(int kind, const char* function, const char* file, unsigned line,
                              const char* text) {
  mc_at_fail(kind, function, file, line, text);
}
[[noreturn]] inline void fail(int kind, const char* function, const char* file, unsigned line,
                              const std::string& text) {
  mc_at_fail(kind, function, file, line, text.c_str());
}
inline std::string tail() { return std::string(); }
template <class... T>
std::string tail(const T&... parts) {
  return str(parts...);
}
}  // namespace mc_at

template <class T>
const T& ArrayRef<T>::at(size_t i) const {
  if (i >= size_) {
    mc_at::fail(kMcAtRuntime, __func__, __FILE__, __LINE__,
                str("ArrayRef: invalid index Index = ", i, "; Length = ", size_));
  }
  return data_[i];
}
template <class T>
const T& ArrayRef<T>::front() const {
  if (size_ == 0) {
    mc_at::fail(kMcAtRuntime, __func__, __FILE__, __LINE__,
                "ArrayRef: attempted to access front() of empty list");
  }
  return data_[0];
}
template <class T>
const T& ArrayRef<T>::back() const {
  if (size_ == 0) {
    mc_at::fail(kMcAtRuntime, __func__, __FILE__, __LINE__,
                "ArrayRef: attempted to access back() of empty list");
  }
  return data_[size_ - 1];
}
template <class T>
ArrayRef<T> ArrayRef<T>::slice(size_t begin, size_t count) const {
  if (begin > size_ || count > size_ - begin) {
    mc_at::fail(kMcAtRuntime, __func__, __FILE__, __LINE__,
                str("ArrayRef: invalid slice, N = ", begin, "; M = ", count, "; size = ", size_));
  }
  return {data_ + begin, count};
}
template <class T>
ArrayRef<T> ArrayRef<T>::slice(size_t begin) const {
  return slice(begin, size_ - begin);
}

template <class T>
T Scalar::to() const {
  const bool is_real = value.kind == kMcAtDouble;
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // The limits are exact: a double of 2^63 is beyond int64_t.
    using Limits = std::numeric_limits<T>;
    const bool fits =
        is_real ? value.real > static_cast<double>(Limits::min()) - 1 &&
                      value.real < 2.0 * static_cast<double>(uint64_t{1} << (Limits::digits - 1))
                : value.integer >= static_cast<int64_t>(std::is_signed_v<T> ? Limits::min() : 0) &&
                      (sizeof(T) == sizeof(int64_t) ||
                       value.integer <= static_cast<int64_t>(Limits::max()));
    if (!fits) {
      mc_at::fail(kMcAtRuntime, __func__, __FILE__, __LINE__,
                  "value cannot be converted to this type without overflow");
    }
  }
  return is_real ? static_cast<T>(value.real) : static_cast<T>(value.integer);
}

}  // namespace c10

#define MC_AT_CHECK(kind, condition, ...)                                            \
  if (C10_UNLIKELY(!(condition))) {                                                  \
    ::c10::mc_at::fail(                                                              \
        kind, __func__, __FILE__, static_cast<uint32_t>(__LINE__),                   \
        ::c10::mc_at::message("Expected " #condition " to be true, but got false.  " \
                              "(Could this error message be improved?  If so, "      \
                              "please report an enhancement request to PyTorch.)",   \
                              ##__VA_ARGS__));                                       \
  }

#define TORCH_CHECK(condition, ...) MC_AT_CHECK(kMcAtRuntime, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) MC_AT_CHECK(kMcAtValue, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) MC_AT_CHECK(kMcAtType, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) MC_AT_CHECK(kMcAtIndex, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  MC_AT_CHECK(kMcAtNotImplemented, condition, ##__VA_ARGS__)
#define TORCH_CHECK_ARG(condition, number, ...) \
  TORCH_CHECK(condition, "invalid argument ", number, ": ", __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(condition, ...)                                                \
  if (C10_UNLIKELY(!(condition))) {                                                          \
    mc_at_fail_internal(__func__, __FILE__, static_cast<uint32_t>(__LINE__),                 \
                        #condition                                                           \
                        " INTERNAL ASSERT FAILED at " MC_AT_QUOTE(__FILE__) ":" MC_AT_QUOTE( \
                            __LINE__) ", please report a bug to PyTorch. ",                  \
                        ::c10::mc_at::tail(__VA_ARGS__).c_str());                            \
  }
#define MC_AT_QUOTE_INNER(text) #text
#define MC_AT_QUOTE(text) MC_AT_QUOTE_INNER(text)
#define AT_ERROR(...)                            \
  do {                                           \
    TORCH_CHECK(false, ::c10::str(__VA_ARGS__)); \
  } while (false)
#define AT_ASSERT(...)                  \
  do {                                  \
    TORCH_INTERNAL_ASSERT(__VA_ARGS__); \
  } while (false)
#define AT_ASSERTM(condition, ...)         \
  do {                                     \
    TORCH_CHECK(condition, ##__VA_ARGS__); \
  } while (false)
#define TORCH_WARN(...) \
  mc_at_warn(__func__, __FILE__, static_cast<uint32_t>(__LINE__), ::c10::str(__VA_ARGS__).c_str())
#define TORCH_WARN_ONCE(...)               \
  do {                                     \
    static const bool mc_at_warned = [&] { \
      TORCH_WARN(__VA_ARGS__);             \
      return true;                         \
    }();                                   \
    (void)mc_at_warned;                    \
  } while (false)

#endif  // MC_AT_CHECK_H_
