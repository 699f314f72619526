// SPDX-License-Identifier: Apache-2.0
//
// Draft: a task graph under construction.  Each value has its array at the sizes of Dim::probe, and
// an interval that contains its elements for all inputs.
//
//   Draft draft(seed, number);
//   const int x = draft.add_input({draft.add_dim("N", 16, 64)}, Draw::kNormal);
#ifndef MC_FORGE_DRAFT_H_
#define MC_FORGE_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/interpret.h"
#include "forge/random.h"

namespace mc::forge {

struct Interval {
  double low = -6, high = 6;
};

struct Spread {
  double deviation = 0;
  double magnitude = 0;
  int distinct = 0;
};

Spread spread_of(std::vector<double> values);

std::string without_digits(std::string name);

// The requirement on a node: values that differ from its operand and from each other, or only
// finite values.
enum class Sense { kNeeded, kFiniteOnly };

class Draft {
 public:
  static constexpr size_t kInputsMax = 6;

  Draft(uint64_t seed, uint64_t number);

  void clear();
  struct Mark {
    size_t dims = 0, values = 0;
  };
  Mark mark() const { return {graph.dims.size(), graph.values.size()}; }
  void restore(const Mark& mark);

  const Array& array(int value) const { return arrays_.at(static_cast<size_t>(value)); }
  const Interval& interval(int value) const { return intervals_.at(static_cast<size_t>(value)); }

  // Adds a size of the module between two bounds.  F, H and other letters have their own probe
  // sizes.
  int add_dim(const std::string& wanted, int low, int high);
  // Makes sizes even for the axes that the operator halves.
  void make_even(const Operator& op, const std::vector<int>& dims);

  bool can_add_input() const { return graph.inputs().size() < kInputsMax; }
  int add_input(std::vector<int> dims, Draw draw, int below = Value::kNoDim);
  int add_given(Value value);
  std::string free_name(const std::string& wanted) const;
  // `layer` is the attribute of the nn layer that owns the parameter, or "".
  int add_parameter(const std::string& name, std::vector<int> dims, const std::string& layer,
                    const std::string& init);

  // Assigns dims to each axis of the node's form, and creates its operands; false if this is
  // impossible.
  bool bind_nest(Node& node);
  // Computes the node's output and adds both to the graph; false if the values make the task
  // invalid.
  bool complete(Node& node, Sense sense);

  TaskGraph graph;
  Random random;

 private:
  int draw_size(int low, int high);
  bool has_dim(const std::string& name) const;
  int add_value(Value value, Array array, Interval interval);
  bool is_even(const Node& node) const;
  bool match(Node& node, const std::vector<Axis>& pattern, const std::vector<int>& dims);
  bool bind_axes(Node& node, const std::vector<Axis>& pattern);
  int new_dim(const std::string& axis);
  int derived_dim(const Node& node, const Axis& axis);
  int operand_of(Node& node, const Operand& operand);
  int64_t steps_of(const Node& node) const;
  bool is_sensible(const Node& node, const Array& after) const;
  Interval interval_of(const Node& node, const Array& array) const;
  Interval grid_interval(const Node& node) const;

  Random probe_random_;
  std::vector<Array> arrays_;
  std::vector<Interval> intervals_;
};

}  // namespace mc::forge

#endif  // MC_FORGE_DRAFT_H_
