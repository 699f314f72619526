// SPDX-License-Identifier: Apache-2.0
//
// Expr: formulas of operators and conditions of faults, as they are written in the data files.
//
// A formula is a C expression.  `v`, `u`, `w` are the operands at the current place, `a`, `b`, `s`
// are results of passes over a row, `c` and `d` are literals: these are floating; all other names
// are integers.  Numbers with a point are floating.  `x[n, h - 1 | 0.0]` is an access with a value
// for places outside of the tensor; names of integer tensors begin with "index".
//
//   MC_TRY(Expr formula, parse_expr("max(v, 0.0)"), "relu");
#ifndef MC_FORGE_EXPR_H_
#define MC_FORGE_EXPR_H_

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::forge {

struct Expr {
  enum class Kind { kNumber, kName, kUnary, kBinary, kSelect, kCall, kAccess };
  Kind kind = Kind::kNumber;
  std::string text;        // The number, the name, the operator, the function or the tensor.
  std::vector<Expr> args;  // Operands; the indices of an access, then its default if it has one.
  bool is_int = false;
  bool has_default = false;
  double number = 0;
  int slot = -1;  // The name's place in the environment, or the tensor's in the operands.
};

// kInvalidInput with the place where the text is not understood.
// `integers` are names that are integers although they look like operands or literals.
Result<Expr> parse_expr(std::string_view text, const std::set<std::string>& integers = {});

// Gives each name its place in `names`, which grows as needed, and each tensor its place in
// `tensors`.  kInvalidInput where a tensor is not there.
Status bind_names(Expr& expr, std::vector<std::string>& names,
                  const std::vector<std::string>& tensors);

// The value of a tensor's element, or nothing outside of it.
using ReadElement = std::function<std::optional<double>(int tensor, std::span<const int> index)>;

// REQUIRES: names are bound, and `values` has one value for each.
double evaluate(const Expr& expr, std::span<const double> values, const ReadElement& read);

// The value of an expression without tensors, by the values of its names.
double evaluate_with(const Expr& expr, const std::function<double(const std::string&)>& value);

// How names and accesses are written in CUDA.
struct Spelling {
  std::function<std::string(const std::string&)> name;
  std::function<std::string(const Expr&)> access;
};
// The maximum of two values is `larger`, which passes NaN on as PyTorch does; that with a literal
// is fmaxf.  The text that uses them needs choice_functions().
std::string cuda_text(const Expr& expr, const Spelling& spelling);

// Definitions of `larger` and `smaller`, where `cuda` mentions them.
std::string choice_functions(std::string_view cuda);

bool mentions(const Expr& expr, std::string_view name);

}  // namespace mc::forge

#endif  // MC_FORGE_EXPR_H_
