// SPDX-License-Identifier: Apache-2.0
//
// TaskGraph: one task as data.  Module, metadata, reasoning, reference values, kernels and bugs are
// all rendered from it, so they agree by construction.
//
// The graph is directed and acyclic: nodes in the order of evaluation, each with values as
// operands. Several nodes may use a value, and several values may be results.
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

// Compact rows are for tiny models: short names, no text.  Full rows resemble text and code by
// people.
enum class Style { kCompact, kFull };

// The set of sizes of a task (sizes.h).
enum class Size { kSmall, kNative, kLarge };

// A size: a constant of the module, or an expression over other sizes ("(H - 1) / 2 + 1", "3").
struct Dim {
  std::string name;
  std::string extent;  // The expression; "" for a constant of the module.
  int size = 0;
  int native = 0, large = 0;
  int probe = 0;  // The size at which the interpreter is compared with PyTorch.
  bool is_constant() const { return extent.empty(); }
};

enum class Origin { kInput, kParameter, kNode };
enum class Draw { kNormal, kPositive, kIndex, kWhole };

// The view by which the kernel's input is obtained from the module's argument (views.h).
enum class View { kNone, kTransposed, kEverySecond, kWithoutFirst };

struct Value {
  Origin origin = Origin::kNode;
  std::string name;       // The name in kernels: "x", "weight"; for a node's value "t0".
  std::string attribute;  // A parameter's name in the module: "fc.weight".
  std::vector<int> dims;  // Indices into TaskGraph::dims; kOne for an axis of length 1.
  Draw draw = Draw::kNormal;
  int below = kNoDim;  // For an index tensor: the dim that bounds its elements.
  std::string init;    // The expression that initializes a parameter that is not part of a layer.
  Type type = Type::kFloat32;
  View view = View::kNone;
  static constexpr int kNoDim = -2;
};
inline constexpr int kOne = -1;

struct Node {
  const Operator* op = nullptr;
  const Form* form = nullptr;
  std::vector<int> operands;  // Indices of values, one for each of the form's operands.
  int output = -1;
  // The dims of each axis by its name; "*" may have several.
  std::map<std::string, std::vector<int>> axes;
  std::string c, d;   // Literals as text; "" if there is none.
  int spelling = 0;   // The index of the operator's PyTorch expression in `torch`.
  std::string layer;  // The attribute's name, if the node is an nn layer.

  std::vector<int> dims_of(const std::vector<Axis>& pattern) const;
  // True if the output has the inner axes as well.
  bool keeps_inner() const;
};

// The outputs of a backward task: gradients of one value with respect to others.
struct Gradient {
  // The number of nodes that compute the value; the later nodes compute gradients.
  size_t num_forward = 0;
  int of = -1;
  int upstream = -1;    // The input that contains the gradient with respect to `of` itself.
  std::vector<int> by;  // The inputs and parameters of the gradients, one for each output.
};

struct TaskGraph {
  uint64_t seed = 0;
  uint64_t number = 0;
  Type type = Type::kFloat32;  // The type of all values except indices.
  Size shown = Size::kSmall;   // The sizes of the module in the data set.
  Style style = Style::kCompact;
  std::vector<Dim> dims;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<int> outputs;  // Indices of values.
  std::optional<Gradient> gradient;

  std::vector<int> inputs() const;      // The inputs, in the order of forward's arguments.
  std::vector<int> parameters() const;  // The parameters, in the order of the module's state.
  std::vector<int> given() const;       // The inputs, then the parameters.
  const Value& value(int i) const { return values.at(static_cast<size_t>(i)); }
  const Dim& dim(int i) const { return dims.at(static_cast<size_t>(i)); }
  // The node that computes a value; null for inputs and parameters.
  const Node* maker(int value) const;
  int num_uses(int value) const;  // The number of uses, by nodes and as a result.

  static int size_in(const Dim& dim, Size size) {
    return size == Size::kSmall ? dim.size : size == Size::kNative ? dim.native : dim.large;
  }
  std::string extent_text(int dim) const;  // The extent as CUDA text: "N", "1", "3".
  int size_of(int dim) const { return dim == kOne ? 1 : this->dim(dim).size; }
  int shown_size_of(int dim) const { return dim == kOne ? 1 : size_in(this->dim(dim), shown); }
  int probe_of(int dim) const { return dim == kOne ? 1 : this->dim(dim).probe; }
  int64_t count_of(const std::vector<int>& some, Size size = Size::kSmall) const;

  std::string id() const;         // The seed and the number, as in "f3-000017".
  std::string structure() const;  // The operators and their connections, without sizes.
  std::vector<std::string> operators() const;
  std::vector<std::string> families() const;  // The families, sorted and without duplicates.
  int depth() const { return static_cast<int>(nodes.size()); }
};

}  // namespace mc::forge

#endif  // MC_FORGE_GRAPH_H_
