// SPDX-License-Identifier: Apache-2.0
//
// TaskGraph: one task as data.  Module, metadata, reasoning, reference values, kernels and bugs are
// all rendered from it, so they agree by construction.
//
// A graph is directed and without circles: nodes in the order of evaluation, each with values as
// operands.  Values may be used by several nodes, and several values may be results.
#ifndef MC_FORGE_GRAPH_H_
#define MC_FORGE_GRAPH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forge/operators.h"
#include "forge/types.h"

namespace mc::forge {

// Compact rows are for tiny models: short names, no text. Full ones are as people write.
enum class Style { kCompact, kFull };

// The binding of a task's sizes (sizes.h).
enum class Size { kSmall, kNative, kLarge };

// A size: a constant of the module, or an expression of others ("(H - 1) / 2 + 1", "3").
struct Dim {
  std::string name;
  std::string extent;  // "" for a constant of the module.
  int size = 0;
  int native = 0, large = 0;
  int probe = 0;  // The size at which the interpreter is compared with PyTorch.
  bool is_constant() const { return extent.empty(); }
};

enum class Origin { kInput, kParameter, kNode };
enum class Draw { kNormal, kPositive, kIndex, kWhole };

// How an input is read of the tensor that the module is given (views.h).
enum class View { kNone, kTransposed, kEverySecond, kWithoutFirst };

struct Value {
  Origin origin = Origin::kNode;
  std::string name;       // In kernels: "x", "weight"; of a node's value "t0".
  std::string attribute;  // A parameter's name in the module: "fc.weight".
  std::vector<int> dims;  // Into TaskGraph::dims; kOne for an axis of length 1.
  Draw draw = Draw::kNormal;
  int below = kNoDim;  // The dim that bounds the elements of an index.
  std::string init;    // How the module makes a parameter that is not a layer's.
  Type type = Type::kFloat32;
  View view = View::kNone;
  static constexpr int kNoDim = -2;
};
inline constexpr int kOne = -1;

struct Node {
  const Operator* op = nullptr;
  const Form* form = nullptr;
  std::vector<int> operands;  // Values, one for each of the form's operands.
  int output = -1;
  std::map<std::string, std::vector<int>> axes;  // Name of an axis to dims ("*" may have many).
  std::string c, d;                              // Literals, as they are written; "" for none.
  int spelling = 0;                              // The index of the operator's `torch` text.
  std::string layer;                             // The attribute where it is an nn layer.

  std::vector<int> dims_of(const std::vector<Axis>& pattern) const;
  // True where the output has the inner axes as well.
  bool keeps_inner() const;
};

// The outputs of a backward task: gradients of one value by others.
struct Gradient {
  size_t num_forward = 0;  // The nodes before are those of the value; the others are of gradients.
  int of = -1;
  int upstream = -1;    // The input that holds the gradient by `of` itself.
  std::vector<int> by;  // Inputs and parameters, one for each output.
};

struct TaskGraph {
  uint64_t seed = 0;
  uint64_t number = 0;
  Type type = Type::kFloat32;  // The type of all values but indices.
  Size shown = Size::kSmall;   // The sizes of the module that is given away.
  Style style = Style::kCompact;
  std::vector<Dim> dims;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<int> outputs;  // Values.
  std::optional<Gradient> gradient;

  std::vector<int> inputs() const;      // In the order of forward's arguments.
  std::vector<int> parameters() const;  // In the order of the state.
  std::vector<int> given() const;       // The inputs, then the parameters.
  const Value& value(int i) const { return values.at(static_cast<size_t>(i)); }
  const Dim& dim(int i) const { return dims.at(static_cast<size_t>(i)); }
  const Node* maker(int value) const;  // Null of inputs and parameters.
  int num_uses(int value) const;       // Uses by nodes, and as a result.

  static int size_in(const Dim& dim, Size size) {
    return size == Size::kSmall ? dim.size : size == Size::kNative ? dim.native : dim.large;
  }
  std::string extent_text(int dim) const;  // "N", "1", "3": as CUDA has it.
  int size_of(int dim) const { return dim == kOne ? 1 : this->dim(dim).size; }
  int shown_size_of(int dim) const { return dim == kOne ? 1 : size_in(this->dim(dim), shown); }
  int probe_of(int dim) const { return dim == kOne ? 1 : this->dim(dim).probe; }
  int64_t count_of(const std::vector<int>& dims, Size size = Size::kSmall) const;

  std::string id() const;         // "f3-000017": seed and number.
  std::string structure() const;  // Operators and their connections alone, without sizes.
  std::vector<std::string> operators() const;
  std::vector<std::string> families() const;  // Sorted, each once.
  int depth() const { return static_cast<int>(nodes.size()); }
};

}  // namespace mc::forge

#endif  // MC_FORGE_GRAPH_H_
