// SPDX-License-Identifier: Apache-2.0
#include "forge/render.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mc::forge {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const std::string& last_name(const TaskGraph& graph, const Value& value) {
  return graph.dims.at(static_cast<size_t>(value.dims.back())).name;
}

std::string layer_text(const TaskGraph& graph, const Node& node) {
  if (node.head != nullptr) {  // linear: [N, K] to [N, M]
    const bool has_bias = node.inputs.size() == 3;
    return has_bias ? "nn.Linear(k, m)" : "nn.Linear(k, m, bias=False)";
  }
  std::string text = node.pointwise != nullptr ? node.pointwise->layer : node.row->layer;
  text = substituted(std::move(text), "{c}", node.c);
  const Value& value = graph.values.at(static_cast<size_t>(node.inputs.front()));
  return substituted(std::move(text), "{m}", lower(last_name(graph, value)));
}

// "fc", "norm"; layers without parameters are "act", "act2", …
std::string layer_name(const TaskGraph& graph, const Node& node) {
  for (const int input : node.inputs) {
    const Value& value = graph.values.at(static_cast<size_t>(input));
    const size_t dot = value.name.find('.');
    if (value.origin == Origin::kParameter && dot != std::string::npos)
      return value.name.substr(0, dot);
  }
  int count = 0;
  for (const Node& other : graph.nodes) {
    if (&other == &node) break;
    if (other.is_layer) ++count;
  }
  return count == 0 ? "act" : fmt::format("act{}", count + 1);
}

std::string operand(const TaskGraph& graph, const Node& node) {
  switch (node.side) {
    case Side::kResidual:
      return "r";
    case Side::kVector:
      return "self.s";
    default:
      return graph.values.at(static_cast<size_t>(node.inputs.at(1))).name;
  }
}

std::string call_text(const TaskGraph& graph, const Node& node, const std::string& x) {
  if (node.is_layer) return fmt::format("self.{}({})", layer_name(graph, node), x);
  std::string text = node.head != nullptr ? node.head->torch
                     : node.pointwise != nullptr
                         ? node.pointwise->torch.at(static_cast<size_t>(node.spelling))
                         : node.row->torch.at(static_cast<size_t>(node.spelling));
  text = substituted(std::move(text), "{x}", x);
  text = substituted(std::move(text), "{c}", node.c);
  text = substituted(std::move(text), "{d}", node.d);
  if (node.head != nullptr) return substituted(std::move(text), "{u}", "y");
  if (node.side != Side::kNone) {
    text = substituted(std::move(text), "{u}", operand(graph, node));
  }
  return text;
}

std::string forward_of(const TaskGraph& graph) {
  std::vector<std::string> names;
  for (const int input : graph.inputs()) {
    names.push_back(graph.values.at(static_cast<size_t>(input)).name);
  }
  std::string text = fmt::format("    def forward(self, {}):\n", fmt::join(names, ", "));
  if (graph.has(Side::kResidual)) text += "        r = x\n";
  for (const Node& node : graph.nodes) {
    const bool is_last = &node == &graph.nodes.back();
    text += fmt::format("        {} {}\n", is_last ? "return" : "x =", call_text(graph, node, "x"));
  }
  return text;
}

std::string dim_text(const TaskGraph& graph, int dim) {
  return dim == kOne ? "1" : graph.dims.at(static_cast<size_t>(dim)).name;
}

std::string inputs_of(const TaskGraph& graph) {
  std::vector<std::string> tensors;
  for (const int input : graph.inputs()) {
    std::vector<std::string> dims;
    for (const int dim : graph.values.at(static_cast<size_t>(input)).dims) {
      dims.push_back(dim_text(graph, dim));
    }
    tensors.push_back(fmt::format("torch.randn({})", fmt::join(dims, ", ")));
  }
  return fmt::format("    return [{}]\n", fmt::join(tensors, ", "));
}

bool uses_functional(const std::string& forward) { return forward.find("F.") != std::string::npos; }

}  // namespace

Construction construction_of(const TaskGraph& graph, Layers layers) {
  Construction made;
  const auto needs = [&](const std::string& name) {
    if (std::ranges::find(made.sizes, name) == made.sizes.end()) made.sizes.push_back(name);
  };
  for (const Node& node : graph.nodes) {
    const bool has_parameters = std::ranges::any_of(node.inputs, [&](int input) {
      return graph.values.at(static_cast<size_t>(input)).origin == Origin::kParameter;
    });
    if (node.side == Side::kVector) {
      const Value& vector = graph.values.at(static_cast<size_t>(node.inputs.at(1)));
      needs(last_name(graph, vector));
      made.lines.push_back(
          fmt::format("self.s = nn.Parameter(torch.randn({}))", lower(last_name(graph, vector))));
    } else if (node.is_layer && (has_parameters || layers == Layers::kAll)) {
      if (node.head != nullptr) needs("K");
      if (has_parameters) needs("M");
      made.lines.push_back(
          fmt::format("self.{} = {}", layer_name(graph, node), layer_text(graph, node)));
    }
  }
  for (const std::string& size : made.sizes) made.arguments += ", " + lower(size);
  return made;
}

std::string shape_text(const TaskGraph& graph, const Value& value) {
  std::vector<std::string> dims;
  for (const int dim : value.dims) dims.push_back(dim_text(graph, dim));
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::string render_module(const TaskGraph& graph) {
  const std::string forward = forward_of(graph);
  std::string text = "import torch\nimport torch.nn as nn\n";
  if (uses_functional(forward)) text += "import torch.nn.functional as F\n";
  text += "\nrequire_general = True\n";
  for (const Dim& dim : graph.dims) text += fmt::format("{} = {}\n", dim.name, dim.size);
  text += "\n\nclass Model(nn.Module):\n";
  const Construction made = construction_of(graph, Layers::kAll);
  if (!made.lines.empty()) {
    text += fmt::format("    def __init__(self{}):\n        super().__init__()\n", made.arguments);
    for (const std::string& line : made.lines) text += "        " + line + "\n";
    text += '\n';
  }
  text += forward;
  text += "\n\ndef get_inputs():\n" + inputs_of(graph);
  text += fmt::format("\n\ndef get_init_inputs():\n    return [{}]\n", fmt::join(made.sizes, ", "));
  return text;
}

}  // namespace mc::forge
