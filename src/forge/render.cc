// SPDX-License-Identifier: Apache-2.0
#include "forge/render.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "forge/interpret.h"
#include "forge/text.h"
#include "forge/views.h"

namespace mc::forge {
namespace {

std::string chosen(std::string text, const Node& node) {
  for (const auto& [name, value] : node.form->choice) {
    text = substituted(std::move(text), "{" + name + "}", value);
  }
  text = substituted(std::move(text), "{c}", node.c);
  return substituted(std::move(text), "{d}", node.d);
}

// A size of the module as Python text; derived sizes are expressions over constants.
std::string python_extent(const TaskGraph& graph, int dim) {
  std::string text = graph.extent_text(dim);
  if (dim == kOne || graph.dim(dim).is_constant() || text != graph.dim(dim).name) return text;
  text = substituted(graph.dim(dim).extent, " / ", " // ");
  for (size_t i = graph.dims.size(); i-- > 0;) {
    const Dim& other = graph.dims[i];
    if (other.is_constant() || static_cast<int>(i) == dim || !has_word(text, other.name)) continue;
    text = with_word(text, other.name, "(" + python_extent(graph, static_cast<int>(i)) + ")");
  }
  return text;
}

// Replaces {K} in a layer's text by the extent of axis k, an argument of the constructor.
std::string with_extents(const TaskGraph& graph, const Node& node, std::string text) {
  for (const auto& [name, dims] : node.axes) {
    if (name == "*") continue;
    const std::string extent = python_extent(graph, dims.front());
    text = substituted(std::move(text), "{" + upper(name) + "}", lower(extent));
  }
  return text;
}

// The names of values in forward: a value that only the next node uses is overwritten.
class Forward {
 public:
  explicit Forward(const TaskGraph& graph) : graph_(graph) {}

  std::string run() {
    std::vector<std::string> names;
    for (const int input : graph_.inputs()) {
      names.push_back(names_[input] = graph_.value(input).name);
    }
    std::string text = fmt::format("    def forward(self, {}):\n", fmt::join(names, ", "));
    for (const int input : graph_.inputs()) {
      const View view = graph_.value(input).view;
      const std::string& name = names_[input];
      if (view != View::kNone)
        text += fmt::format("        {} = {}\n", name, view_text(view, name));
    }
    if (graph_.gradient) return text + gradient();
    for (size_t i = 0; i < graph_.nodes.size(); ++i) text += statement(i);
    if (graph_.outputs.size() == 1) return text;
    std::vector<std::string> results;
    for (const int output : graph_.outputs) results.push_back(names_.at(output));
    return text + fmt::format("        return {}\n", fmt::join(results, ", "));
  }

 private:
  // Autograd needs the inputs under their names until the end, so no value reuses their names.
  std::string gradient() {
    const Gradient& wanted = *graph_.gradient;
    std::string inputs, detached, by;
    for (const int value : wanted.by) {
      by += (by.empty() ? "" : ", ") + operand(value);
      if (graph_.value(value).origin != Origin::kInput) continue;
      const std::string& name = names_.at(value);
      inputs += (inputs.empty() ? "" : ", ") + name;
      detached += fmt::format("{}{}.detach().requires_grad_()", detached.empty() ? "" : ", ", name);
    }
    std::string text;
    if (!inputs.empty()) text += fmt::format("{} = {}\n", inputs, detached);
    for (size_t i = 0; i < wanted.num_forward; ++i) {
      const Node& node = graph_.nodes[i];
      const std::string call = call_text(node);
      names_[node.output] = i + 1 == wanted.num_forward ? "out" : fmt::format("t{}", i + 1);
      text += fmt::format("{} = {}\n", names_[node.output], call);
    }
    const bool is_single = wanted.by.size() == 1;
    text += fmt::format("return torch.autograd.grad({}, {}, {}){}\n", names_.at(wanted.of),
                        is_single ? by : "(" + by + ")", names_.at(wanted.upstream),
                        is_single ? "[0]" : "");
    return "        with torch.enable_grad():\n" + indented(text, 12);
  }

  std::string statement(size_t i) {
    const Node& node = graph_.nodes[i];
    const std::string call = call_text(node);
    if (i + 1 == graph_.nodes.size() && graph_.outputs.size() == 1) {
      return fmt::format("        return {}\n", call);
    }
    std::string name = reusable_name(i);
    if (name.empty()) name = fmt::format("t{}", ++num_names_);
    names_[node.output] = name;
    return fmt::format("        {} = {}\n", name, call);
  }

  // The name of the first operand, if that value is not needed again.
  std::string reusable_name(size_t i) const {
    const int first = graph_.nodes[i].operands.front();
    const std::string& name = names_.at(first);
    for (const auto& [value, other] : names_) {
      if (other != name || !is_current(value, name)) continue;
      if (is_needed_after(value, i)) return "";
    }
    return name;
  }

  bool is_current(int value, const std::string& name) const {
    int latest = -1;
    for (const auto& [other, found] : names_) {
      if (found == name) latest = std::max(latest, other);
    }
    return latest == value;
  }

  bool is_needed_after(int value, size_t i) const {
    for (size_t k = i + 1; k < graph_.nodes.size(); ++k) {
      if (std::ranges::find(graph_.nodes[k].operands, value) != graph_.nodes[k].operands.end()) {
        return true;
      }
    }
    return std::ranges::find(graph_.outputs, value) != graph_.outputs.end();
  }

  std::string operand(int value) const {
    const Value& found = graph_.value(value);
    return found.origin == Origin::kParameter ? "self." + found.attribute : names_.at(value);
  }

  std::string call_text(const Node& node) const {
    if (!node.layer.empty()) {
      std::string text = fmt::format("self.{}({})", node.layer, operand(node.operands.front()));
      return text;
    }
    std::string text = chosen(node.op->torch.at(static_cast<size_t>(node.spelling)), node);
    text = substituted(std::move(text), "{x}", operand(node.operands.front()));
    for (size_t i = 1; i < node.operands.size(); ++i) {
      text = substituted(std::move(text), "{" + node.form->operands[i].name + "}",
                         operand(node.operands[i]));
    }
    return text;
  }

  const TaskGraph& graph_;
  std::map<int, std::string> names_;
  int num_names_ = 0;
};

std::string extents_of(const TaskGraph& graph, const std::vector<int>& dims) {
  std::vector<std::string> texts;
  for (const int dim : dims) texts.push_back(graph.extent_text(dim));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The argument ", dtype=torch.float16"; "" for the default type.
std::string dtype_text(Type type) {
  return type == Type::kFloat32 ? "" : fmt::format(", dtype=torch.{}", to_string(type));
}

std::string input_text(const TaskGraph& graph, const Value& value) {
  std::vector<std::string> extents;
  for (const int dim : value.dims) extents.push_back(python_extent(graph, dim));
  if (extents.empty()) extents.emplace_back("()");
  extents = base_extents(value.view, std::move(extents));
  const std::string shape = fmt::format("{}", fmt::join(extents, ", "));
  const std::string type = dtype_text(value.type);
  switch (value.draw) {
    case Draw::kNormal:
      return fmt::format("torch.randn({}{})", shape, type);
    case Draw::kPositive:
      return fmt::format("torch.rand({}{}) + 0.5", shape, type);
    case Draw::kWhole:
      return fmt::format("torch.randint({}, {}, ({},){})", -kWholeMax, kWholeMax + 1, shape,
                         value.type == Type::kInt64 ? "" : type);
    case Draw::kIndex:
      return fmt::format("torch.randint(0, {}, ({},))", python_extent(graph, value.below), shape);
  }
  MC_CHECK(false);
}

std::string inputs_of(const TaskGraph& graph) {
  std::vector<std::string> tensors;
  for (const int input : graph.inputs()) {
    tensors.push_back(input_text(graph, graph.value(input)));
  }
  return fmt::format("    return [{}]\n", fmt::join(tensors, ", "));
}

class Constructor {
 public:
  Constructor(const TaskGraph& graph, Layers layers) : graph_(graph), layers_(layers) {}

  Construction run() {
    const size_t count = graph_.gradient ? graph_.gradient->num_forward : graph_.nodes.size();
    for (size_t i = 0; i < count; ++i) add(graph_.nodes[i]);
    for (const std::string& size : made_.sizes) made_.arguments += ", " + lower(size);
    return std::move(made_);
  }

 private:
  void add(const Node& node) {
    const bool has_parameters = std::ranges::any_of(
        node.operands, [&](int i) { return graph_.value(i).origin == Origin::kParameter; });
    for (const int operand : node.operands) {
      const Value& value = graph_.value(operand);
      if (value.origin != Origin::kParameter) continue;
      for (const int dim : value.dims) need(dim);
      if (node.layer.empty() && done_.insert(operand).second) add_parameter(value);
    }
    if (node.layer.empty() || (!has_parameters && layers_ == Layers::kParametersOnly)) return;
    if (!layers_done_.insert(node.layer).second) return;
    for (const auto& [name, dims] : node.axes) {
      const bool is_named = node.op->layer.find("{" + upper(name) + "}") != std::string::npos;
      if (is_named) need(dims.front());
    }
    std::string layer = with_extents(graph_, node, chosen(node.op->layer, node));
    if (has_parameters) layer.insert(layer.rfind(')'), dtype_text(graph_.type));
    made_.lines.push_back(fmt::format("self.{} = {}", node.layer, layer));
  }

  // A derived size is an expression of the constructor's arguments, which are constants.
  void need(int dim) {
    if (dim == kOne) return;
    const std::string text = python_extent(graph_, dim);
    for (const Dim& other : graph_.dims) {
      const bool is_used = other.is_constant() && has_word(text, other.name);
      if (is_used && std::ranges::find(made_.sizes, other.name) == made_.sizes.end())
        made_.sizes.push_back(other.name);
    }
  }

  void add_parameter(const Value& value) {
    const std::string shape = lower(extents_of(graph_, value.dims)) + dtype_text(value.type);
    std::string made = value.init.empty() ? "torch.randn({shape})" : value.init;
    if (value.draw == Draw::kPositive) made = "torch.rand({shape}) + 0.5";
    made = substituted(std::move(made), "{shape}", shape);
    made_.lines.push_back(fmt::format("self.{} = nn.Parameter({})", value.attribute, made));
  }

  const TaskGraph& graph_;
  Layers layers_;
  Construction made_;
  std::set<int> done_;
  std::set<std::string> layers_done_;
};

}  // namespace

Construction construction_of(const TaskGraph& graph, Layers layers) {
  return Constructor(graph, layers).run();
}

std::string shape_text(const TaskGraph& graph, const Value& value) {
  return "[" + extents_of(graph, value.dims) + "]";
}

std::string render_module(const TaskGraph& graph) { return render_module(graph, graph.shown); }

std::string render_module(const TaskGraph& graph, Size size) {
  const std::string forward = Forward(graph).run();
  const Construction made = construction_of(graph, Layers::kAll);
  std::string text = "import torch\nimport torch.nn as nn\n";
  if (forward.find("F.") != std::string::npos) text += "import torch.nn.functional as F\n";
  text += "\nrequire_general = True\n";
  for (const Dim& dim : graph.dims) {
    if (dim.is_constant())
      text += fmt::format("{} = {}\n", dim.name, TaskGraph::size_in(dim, size));
  }
  text += "\n\nclass Model(nn.Module):\n";
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
