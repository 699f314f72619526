// SPDX-License-Identifier: Apache-2.0
#include "forge/graph.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace mc::forge {
namespace {

const char* side_name(Side side) {
  switch (side) {
    case Side::kNone:
      return "";
    case Side::kInput:
      return "[input]";
    case Side::kVector:
      return "[vector]";
    case Side::kColumn:
      return "[column]";
    case Side::kResidual:
      return "[residual]";
  }
  return "";
}

std::vector<int> values_of(const TaskGraph& graph, Origin origin) {
  std::vector<int> found;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].origin == origin) found.push_back(static_cast<int>(i));
  }
  return found;
}

}  // namespace

const char* Node::name() const {
  if (head != nullptr) return head->name;
  return pointwise != nullptr ? pointwise->name : row->name;
}

Family Node::family() const {
  if (head != nullptr) return head->family;
  if (row != nullptr) return row->family;
  const bool broadcasts = side == Side::kVector || side == Side::kColumn;
  return broadcasts ? Family::kBroadcast : Family::kElementwise;
}

const Node* TaskGraph::head() const {
  return !nodes.empty() && nodes.front().head != nullptr ? &nodes.front() : nullptr;
}

const Node* TaskGraph::row() const {
  const auto found = std::ranges::find_if(nodes, [](const Node& n) { return n.row != nullptr; });
  return found == nodes.end() ? nullptr : &*found;
}

std::vector<const Node*> TaskGraph::before_row() const {
  std::vector<const Node*> found;
  for (const Node& node : nodes) {
    if (node.row != nullptr) break;
    if (node.pointwise != nullptr) found.push_back(&node);
  }
  return found;
}

std::vector<const Node*> TaskGraph::after_row() const {
  std::vector<const Node*> found;
  bool is_after = false;
  for (const Node& node : nodes) {
    if (is_after) found.push_back(&node);
    is_after = is_after || node.row != nullptr;
  }
  return found;
}

std::vector<int> TaskGraph::inputs() const { return values_of(*this, Origin::kInput); }
std::vector<int> TaskGraph::parameters() const { return values_of(*this, Origin::kParameter); }

bool TaskGraph::has(Side side) const {
  return std::ranges::any_of(nodes, [side](const Node& node) { return node.side == side; });
}

std::string TaskGraph::id() const { return fmt::format("f{}-{:06}", seed, number); }

std::string TaskGraph::structure() const {
  std::string text;
  for (const Node& node : nodes) {
    if (!text.empty()) text += '>';
    text += node.name();
    text += side_name(node.side);
  }
  return text;
}

std::vector<std::string> TaskGraph::operators() const {
  std::vector<std::string> names;
  for (const Node& node : nodes) names.emplace_back(node.name());
  return names;
}

std::vector<std::string> TaskGraph::families() const {
  std::set<std::string> names;
  for (const Node& node : nodes) names.insert(family_name(node.family()));
  return {names.begin(), names.end()};
}

}  // namespace mc::forge
