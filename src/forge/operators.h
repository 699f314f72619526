// SPDX-License-Identifier: Apache-2.0
//
// The operator table, read from data/forge/operators/*.json (docs/forge.md describes the members).
//
// An operator is pointwise, or a nest of loops: for each place of the group axes it makes passes
// over the inner axes, each of which combines an element's formula, and then a result.  Where the
// output has the inner axes as well (norms, softmax) the result is computed for each element.
// Interpreter, module and kernels are all made of the same formulas.
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
  std::optional<Expr> finish;  // A formula of the pass's own accumulator.
};

// An axis of a pattern.  "*" stands for one or more leading axes; an extent is an expression over
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
  std::string init;   // How a parameter is made, with {shape}; "" for a plain randn.
};

// An operator with one choice of its attributes.
struct Form {
  std::map<std::string, std::string> choice;  // Values that replace {name} in texts.
  std::vector<Operand> operands;              // The first one is the value that flows.
  std::vector<Axis> out;
  std::vector<Axis> inner;
  std::vector<Pass> passes;
  Expr result;
  std::vector<std::string> names;  // Names in all formulas, in the order of their slots.
  std::vector<std::string> row_axes, column_axes, depth_axes;  // For tiles; empty for none.
  std::optional<Expr> scan;  // The element whose running combination the result is.
};

struct Operator {
  std::string name;
  std::string family;
  std::string formula;                // For people.
  std::vector<std::string> torch;     // Spellings, the plainest first.
  std::string layer;                  // "nn.ReLU()", or "".
  std::string layer_name;             // "fc": what a layer's attribute is called.
  std::vector<std::string> literals;  // Choices for c, or "c,d"; empty for none.
  std::string scheme;  // A property that templates may need: "moments", "online", "scan".
  std::vector<std::string> even;               // Axes whose extents are even.
  std::vector<std::vector<std::string>> then;  // Choices for the operators that follow a focus.
  bool is_pointwise = false;
  bool is_whole = false;                        // Operands and result are integers.
  bool is_rare = false;                         // Not drawn but where its family is asked for.
  double low = -1e30, high = 1e30;              // Bounds of the operand's values.
  double range_low = -1e30, range_high = 1e30;  // Bounds of the results.
  std::vector<Form> forms;
  // Operators of the family "backward": the gradient by one operand each, of operands of this one
  // and "g", the gradient by the output.  Their forms are in the order of this operator's.
  std::vector<Operator> gradients;
  std::string gradient_of;  // The operand's name, in a gradient.

  size_t num_operands() const { return forms.front().operands.size(); }
};

// kInvalidInput with the file and the operator that are wrong.
Result<std::vector<Operator>> load_operators(const std::filesystem::path& folder);

}  // namespace mc::forge

#endif  // MC_FORGE_OPERATORS_H_
