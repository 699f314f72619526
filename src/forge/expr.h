// SPDX-License-Identifier: Apache-2.0
//
// Expr: parsed formulas of operators and conditions of faults, as the data files contain them.
//
// A formula is a C expression.  `v`, `u`, `w` are the operands at the current index, `a`, `b`, `s`
// are results of passes over a row, `c` and `d` are literals: these are floating; all other names
// are integers.  Numbers with a point are floating.  `x[n, h - 1 | 0.0]` is an access with a
// default value for indices outside the tensor; names of integer tensors begin with "index".
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
  std::string text;  // The text of the number, name, operator, function or tensor.
  // The operands; for an access, its indices and then its default if it has one.
  std::vector<Expr> args;
  bool is_int = false;
  bool has_default = false;
  double number = 0;
  int slot = -1;  // The index of the name in the environment, or of the tensor in the operands.
};

// Parses a formula.  kInvalidInput names the position of a syntax error. `integers` are names that
// are integers although they look like operands or literals.
Result<Expr> parse_expr(std::string_view text, const std::set<std::string>& integers = {});

// Sets the slot of each name to its index in `names`, which grows as needed, and the slot of each
// tensor to its index in `tensors`.  kInvalidInput if a tensor is missing.
Status bind_names(Expr& expr, std::vector<std::string>& names,
                  const std::vector<std::string>& tensors);

// Returns the value of a tensor's element, or nothing for an index outside the tensor.
using ReadElement = std::function<std::optional<double>(int tensor, std::span<const int> index)>;

// The value of an expression.  REQUIRES: names are bound, and `values` has one value for each name.
double evaluate(const Expr& expr, std::span<const double> values, const ReadElement& read);

// The value of an expression without tensors; `value` returns the values of names.
double evaluate_with(const Expr& expr, const std::function<double(const std::string&)>& value);

// The CUDA text of names and accesses.
struct Spelling {
  std::function<std::string(const std::string&)> name;
  std::function<std::string(const Expr&)> access;
};
// The CUDA text of an expression.  The maximum of two values is written `larger`, which propagates
// NaN as PyTorch does; the maximum with a literal is fmaxf.  Text with `larger` or `smaller` needs
// choice_functions().
std::string cuda_text(const Expr& expr, const Spelling& spelling);

// The definitions of `larger` and `smaller`, if `cuda` uses them.
std::string choice_functions(std::string_view cuda);

bool mentions(const Expr& expr, std::string_view name);

}  // namespace mc::forge

#endif  // MC_FORGE_EXPR_H_
