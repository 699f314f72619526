// SPDX-License-Identifier: Apache-2.0
//
// Result<T>: a value, or an Error that says what failed in the environment.
//
// For failures of the machine (fork, disk, a broken pipe), never for what a candidate did: a
// candidate's fault is data (task/verdict.h).  The names are those of std::expected.  Each layer
// that passes an error on adds one clause of context, unless the error begins with that clause
// already:
//
//   Result<Fd> open_artifact(const std::string& path) {
//     MC_TRY(Fd fd, open_file(path), "open artifact " + path);
//     return fd;
//   }
#ifndef MC_CORE_RESULT_H_
#define MC_CORE_RESULT_H_

#include <string>
#include <utility>
#include <variant>

namespace mc {

enum class ErrorCode {
  kInvalidInput,  // Unusable input of the user; the message says what to do.
  kNotFound,
  kExhausted,    // Not enough memory at the moment.
  kUnavailable,  // A tool, feature or process is missing, or a process died.
  kIo,
  kTimeout,
  kProtocol,     // A peer violated the protocol.
  kUnsupported,  // The request cannot be served here, however often it is repeated.
};

struct Error {
  ErrorCode code = ErrorCode::kIo;
  std::string message;
};

// The error for invalid input of the user.
inline Error invalid(std::string message) { return {ErrorCode::kInvalidInput, std::move(message)}; }

struct Nothing {};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit, as in std::expected.
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool has_value() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return has_value(); }
  // REQUIRES: has_value().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  // REQUIRES: !has_value().
  const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

using Status = Result<Nothing>;
inline Status ok() { return Nothing{}; }

inline Error with_context(Error error, const std::string& context) {
  const std::string prefix = context + ": ";
  if (!error.message.starts_with(prefix)) error.message.insert(0, prefix);
  return error;
}

}  // namespace mc

#define MC_CONCAT_(a, b) a##b
#define MC_CONCAT(a, b) MC_CONCAT_(a, b)
// MC_TRY(declaration, expression, context): declares the value, or returns the error from here.
#define MC_TRY(declaration, expression, context)                              \
  auto MC_CONCAT(mc_try_, __LINE__) = (expression);                           \
  if (!MC_CONCAT(mc_try_, __LINE__))                                          \
    return ::mc::with_context(MC_CONCAT(mc_try_, __LINE__).error(), context); \
  declaration = std::move(MC_CONCAT(mc_try_, __LINE__)).value()
// MC_TRY_VOID(expression, context): the same for a Status.
#define MC_TRY_VOID(expression, context)         \
  if (auto mc_status = (expression); !mc_status) \
  return ::mc::with_context(mc_status.error(), context)

#endif  // MC_CORE_RESULT_H_
