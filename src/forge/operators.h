// SPDX-License-Identifier: Apache-2.0
//
// The operator table, read from data/forge/operators/*.json (docs/forge.md describes the members).
//
// An operator is either pointwise or a nest of loops.  A nest makes passes over the inner axes for
// each index of the group axes; a pass combines the values of an element formula, and a result
// formula follows.  If the output has the inner axes as well (norms, softmax), the result is
// computed for each element. Interpreter, module and kernels are all generated from these formulas.
#ifndef MC_FORGE_OPERATORS_H_
#define MC_FORGE_OPERATORS_H_

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "forge/expr.h"

namespace mc::forge {

enum class Combine { kSum, kMax, kMin, kProduct };

struct Pass {
  Combine combine = Combine::kSum;
  Expr element;
  std::optional<Expr> finish;  // A formula that is applied to the pass's accumulator at the end.
};

// An axis of a pattern.  "*" stands for one or more leading axes.  An extent is an expression over
// the extents of other axes, which are written in capitals.
struct Axis {
  std::string name;
  std::optional<Expr> extent;
};

enum class OperandKind { kValue, kInput, kParameter, kIndex };

struct Operand {
  OperandKind kind = OperandKind::kValue;
  std::string name;
  std::vector<Axis> axes;
  std::string below;  // The axis whose extent bounds the elements of an index.
  // The expression that initializes a parameter, with {shape}; "" for a plain randn.
  std::string init;
};

// An operator with one combination of its attributes.
struct Form {
  std::map<std::string, std::string> choice;  // The values that replace {name} in texts.
  std::vector<Operand> operands;  // The operands; the first one is the value of the preceding node.
  std::vector<Axis> out;
  std::vector<Axis> inner;
  std::vector<Pass> passes;
  Expr result;
  std::vector<std::string> names;  // The names in all formulas, in the order of their slots.
  // The axes of tiles; empty if tiles are impossible.
  std::vector<std::string> row_axes, column_axes, depth_axes;
  // For a scan: the element formula, whose running combination is the result.
  std::optional<Expr> scan;
};

struct Operator {
  std::string name;
  std::string family;
  std::string formula;             // The formula as readers see it.
  std::vector<std::string> torch;  // PyTorch expressions, the simplest first.
  std::string layer;               // "nn.ReLU()", or "".
  std::string layer_name;          // The name of the layer's attribute, such as "fc".
  // The choices for c, or for "c,d"; empty if there are no literals.
  std::vector<std::string> literals;
  std::string scheme;  // A property that templates may need: "moments", "online", "scan".
  std::vector<std::string> even;  // The axes whose extents must be even.
  // The choices for the operators that follow this one if it is the task's focus.
  std::vector<std::vector<std::string>> then;
  bool is_pointwise = false;
  bool is_whole = false;  // True if operands and result are integers.
  bool is_rare = false;   // True if the operator is drawn only when its family is requested.
  double low = -1e30, high = 1e30;              // The bounds of the operand's values.
  double range_low = -1e30, range_high = 1e30;  // The bounds of the results.
  std::vector<Form> forms;
  // The operators of the family "backward": each computes the gradient with respect to one operand,
  // from the operands and "g", the gradient with respect to the output.  Their forms have the same
  // order as this operator's.
  std::vector<Operator> gradients;
  std::string gradient_of;  // For a gradient: the name of its operand.

  size_t num_operands() const { return forms.front().operands.size(); }
};

// Reads all operators.  kInvalidInput names the invalid file and operator.
Result<std::vector<Operator>> load_operators(const std::filesystem::path& folder);

}  // namespace mc::forge

#endif  // MC_FORGE_OPERATORS_H_
