// SPDX-License-Identifier: Apache-2.0
#include "forge/graph.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

namespace mc::forge {
namespace {

std::vector<int> values_of(const TaskGraph& graph, Origin origin) {
  std::vector<int> found;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].origin == origin) found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace

std::vector<int> Node::dims_of(const std::vector<Axis>& pattern) const {
  std::vector<int> dims;
  for (const Axis& axis : pattern) {
    const auto& found = axes.at(axis.name);
    dims.insert(dims.end(), found.begin(), found.end());
  }
  return dims;
}

bool Node::keeps_inner() const {
  return !form->inner.empty() && std::ranges::any_of(form->out, [&](const Axis& axis) {
    return axis.name == form->inner.front().name;
  });
}

std::vector<int> TaskGraph::inputs() const { return values_of(*this, Origin::kInput); }
std::vector<int> TaskGraph::parameters() const { return values_of(*this, Origin::kParameter); }

std::vector<int> TaskGraph::given() const {
  std::vector<int> found = inputs();
  std::ranges::copy(parameters(), std::back_inserter(found));
  return found;
}

const Node* TaskGraph::maker(int value) const {
  const auto found = std::ranges::find(nodes, value, &Node::output);
  return found == nodes.end() ? nullptr : &*found;
}

int TaskGraph::num_uses(int value) const {
  int count = static_cast<int>(std::ranges::count(outputs, value));
  for (const Node& node : nodes) {
    count += std::ranges::find(node.operands, value) != node.operands.end() ? 1 : 0;
  }
  return count;
}

std::string TaskGraph::extent_text(int dim) const {
  if (dim == kOne) return "1";
  const Dim& found = this->dim(dim);
  const bool is_number =
      !found.extent.empty() && found.extent.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? found.extent : found.name;
}

int64_t TaskGraph::count_of(const std::vector<int>& some, Size size) const {
  int64_t count = 1;
  for (const int dim : some) count *= dim == kOne ? 1 : size_in(this->dim(dim), size);
  return count;
}

std::string TaskGraph::id() const { return fmt::format("f{}-{:06}", seed, number); }

std::string TaskGraph::structure() const {
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0) text += '>';
    text += nodes[i].op->name;
    for (size_t k = 0; k < nodes[i].operands.size(); ++k) {
      const int operand = nodes[i].operands[k];
      const Node* before = maker(operand);
      const bool follows = before != nullptr && i > 0 && before == &nodes[i - 1];
      if (k == 0 && (follows || before == nullptr)) continue;
      const Value& from = value(operand);
      if (before != nullptr) {
        text += fmt::format("[{}]", before - nodes.data());
      } else {
        text += from.origin == Origin::kParameter ? "[parameter]" : fmt::format("[{}]", from.name);
      }
    }
  }
  return outputs.size() > 1 ? text + fmt::format("={}", outputs.size()) : text;
}

std::vector<std::string> TaskGraph::operators() const {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.push_back(node.op->name);
  return names;
}

std::vector<std::string> TaskGraph::families() const {
  std::set<std::string> names;
  for (const Node& node : nodes) {
    names.insert(node.op->family);
    // An operand whose shape differs from the output's is broadcast.
    if (!node.op->is_pointwise) continue;
    for (const int operand : node.operands) {
      if (value(operand).dims != value(node.output).dims) names.insert("broadcast");
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace mc::forge
