// SPDX-License-Identifier: Apache-2.0
//
// TaskGraph: one task as data.  Module, metadata, reasoning, reference values, kernels and bugs are
// all rendered from it, so they agree by construction.
//
// A graph is a chain: a head (one input, an outer combination of two, or a matrix product), then
// pointwise operators and at most one operator over rows.  A pointwise operator may take a second
// operand from the side: another input, a parameter, a column, or the head's own value.
#ifndef MC_FORGE_GRAPH_H_
#define MC_FORGE_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "forge/operators.h"

namespace mc::forge {

// A size: a constant of the module, with the value for the interpreter's check.
struct Dim {
  std::string name;
  int size = 0;
  int probe = 0;
};

enum class Origin { kInput, kParameter, kNode };

struct Value {
  Origin origin = Origin::kNode;
  std::string name;  // In kernels and in the module: "x"; of a layer's parameter "norm.weight".
  std::vector<int> dims;  // Into TaskGraph::dims; kOne for an axis of length 1.
};
inline constexpr int kOne = -1;

// The second operand of a pointwise operator.
enum class Side { kNone, kInput, kVector, kColumn, kResidual };

struct Node {
  // Exactly one is not null.
  const Head* head = nullptr;
  const Pointwise* pointwise = nullptr;
  const RowOperator* row = nullptr;

  std::vector<int> inputs;  // Values: operands, then parameters.
  int output = -1;
  Side side = Side::kNone;
  std::string c, d;       // Literals, as they are written; "" for none.
  int spelling = 0;       // Of the row's `torch` texts.
  bool is_layer = false;  // Rendered as an nn layer.

  const char* name() const;
  Family family() const;
};

struct TaskGraph {
  uint64_t seed = 0;
  uint64_t number = 0;
  std::vector<Dim> dims;  // The leading ones, then the last, then (matmul) the inner one.
  std::vector<Value> values;
  std::vector<Node> nodes;  // In order; the last one's output is the task's.

  const Node* head() const;                     // Null where the head is one input.
  const Node* row() const;                      // Null where there is no operator over rows.
  std::vector<const Node*> before_row() const;  // Pointwise operators before it, or all.
  std::vector<const Node*> after_row() const;
  std::vector<int> inputs() const;      // Values, in the order of forward's arguments.
  std::vector<int> parameters() const;  // Values, in the order of the state.
  const Value& output() const { return values.at(static_cast<size_t>(nodes.back().output)); }
  bool has(Side side) const;

  std::string id() const;         // "f3-000017": seed and number.
  std::string structure() const;  // Operators and sides alone: "relu>add[vector]>sum".
  std::vector<std::string> operators() const;
  std::vector<std::string> families() const;  // Sorted, each once.
  int depth() const { return static_cast<int>(nodes.size()); }
};

}  // namespace mc::forge

#endif  // MC_FORGE_GRAPH_H_
