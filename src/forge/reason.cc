// SPDX-License-Identifier: Apache-2.0
#include "forge/reason.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/launch.h"
#include "forge/mutate.h"
#include "forge/random.h"
#include "forge/render.h"
#include "forge/text.h"
#include "forge/views.h"
#include "forge/words.h"

namespace mc::forge {
namespace {

std::vector<int64_t> sizes_of(const TaskGraph& graph, const Value& value) {
  std::vector<int64_t> sizes;
  for (const int dim : value.dims) sizes.push_back(graph.shown_size_of(dim));
  return sizes;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

// Sentences of six steps, each on a line of its own.
class Reasoner {
 public:
  Reasoner(const TaskGraph& graph, const Solution& solution, const TemplateLibrary& library)
      : graph_(graph),
        solution_(solution),
        library_(library),
        random_(graph.seed, "words", graph.number) {}

  std::string run() {
    decomposition();
    mathematics();
    shapes();
    mapping();
    boundaries();
    dangers();
    return std::move(text_);
  }

 private:
  void begin_step() { text_ += fmt::format("{}. ", ++step_), is_first_ = true; }

  void say(std::string_view sentence, const Slots& slots = {}) {
    text_ += (is_first_ ? "" : "   ") + phrased(sentence, slots, random_) + "\n";
    is_first_ = false;
  }

  static std::string chain_of(const std::vector<const Node*>& nodes) {
    std::vector<std::string> names;
    for (const Node* node : nodes) names.push_back(node->op->name);
    return fmt::format("{}", fmt::join(names, ", then "));
  }

  std::vector<const Node*> all_nodes() const {
    std::vector<const Node*> nodes;
    for (const Node& node : graph_.nodes) nodes.push_back(&node);
    return nodes;
  }

  void decomposition() {
    begin_step();
    say("operators",
        {{"count", std::to_string(graph_.nodes.size())}, {"chain", chain_of(all_nodes())}});
    say("kernels", {{"kernels", std::to_string(solution_.parts.size())}});
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      const Stage& stage = solution_.parts[k].stage;
      std::vector<const Node*> nodes;
      if (stage.core != nullptr) nodes.push_back(stage.core);
      nodes.insert(nodes.end(), stage.nodes.begin(), stage.nodes.end());
      if (nodes.empty()) continue;
      say("stage", {{"k", number(k)},
                    {"chain", chain_of(nodes)},
                    {"value", value_name(graph_, stage.output)}});
    }
  }

  void mathematics() {
    begin_step();
    bool is_stable = false;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      say("formula", {{"k", number(i)}, {"op", node.op->name}, {"formula", formula_text(node)}});
      is_stable = is_stable || node.op->scheme == "online" || node.op->scheme == "moments";
    }
    if (is_stable) say("stable");
  }

  void tensor(int at) {
    const Value& value = graph_.value(at);
    const std::vector<int64_t> sizes = sizes_of(graph_, value);
    say("tensor", {{"name", value_name(graph_, at)},
                   {"shape", shape_text(graph_, value)},
                   {"sizes", joined(sizes)},
                   {"count", std::to_string(count_of(sizes))}});
  }

  void shapes() {
    begin_step();
    for (const int value : graph_.given()) tensor(value);
    std::vector<std::string> seen;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Value& value = graph_.value(graph_.nodes[i].output);
      for (const int dim : value.dims) {
        if (dim == kOne || graph_.dim(dim).is_constant()) continue;
        const std::string extent = graph_.extent_text(dim);
        if (std::ranges::find(seen, extent) != seen.end()) continue;
        seen.push_back(extent);
        say("extent", {{"extent", extent}, {"size", std::to_string(graph_.shown_size_of(dim))}});
      }
      say("step_shape", {{"k", number(i)},
                         {"shape", shape_text(graph_, value)},
                         {"sizes", joined(sizes_of(graph_, value))}});
    }
  }

  void mapping() {
    begin_step();
    const std::vector<int64_t> threads = threads_of_launches(solution_.cuda);
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      const Part& part = solution_.parts[k];
      say("mapping", {{"k", number(k)}, {"how", mapping_of(graph_, part)}});
      for (const auto& [name, value] : part.shown_sizes) {
        say("run", {{"k", number(k)}, {"name", name}, {"value", std::to_string(value)}});
      }
      // A template with a second launch has more launches than parts.
      if (threads.size() != solution_.parts.size() || threads[k] == 0) continue;
      say("block", {{"k", number(k)},
                    {"threads", std::to_string(threads[k])},
                    {"warps", std::to_string((threads[k] + 31) / 32)}});
    }
    for (const int input : graph_.inputs()) strides(input);
  }

  // An element drawn at random, and where it is.
  void strides(int input) {
    const std::vector<int64_t> sizes = sizes_of(graph_, graph_.value(input));
    if (sizes.empty()) return;
    const std::vector<int64_t> steps = strides_of(graph_.value(input).view, sizes);
    std::vector<int64_t> index;
    int64_t offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      index.push_back(random_.below(static_cast<int>(std::min<int64_t>(sizes[i], 1 << 30))));
      offset += index.back() * steps[i];
    }
    say("strides", {{"name", value_name(graph_, input)},
                    {"strides", joined(steps)},
                    {"index", joined(index)},
                    {"offset", std::to_string(offset)}});
  }

  void boundaries() {
    begin_step();
    int64_t largest = 0;
    for (const Value& value : graph_.values) {
      largest = std::max(largest, count_of(sizes_of(graph_, value)));
    }
    say("largest", {{"count", std::to_string(largest)}});
    const std::vector<int64_t> threads = threads_of_launches(solution_.cuda);
    for (size_t k = 0; k < solution_.parts.size() && threads.size() == solution_.parts.size();
         ++k) {
      const auto n = solution_.parts[k].shown_sizes.find("n");
      if (n == solution_.parts[k].shown_sizes.end() || threads[k] == 0) continue;
      say("tail", {{"name", "n"},
                   {"value", std::to_string(n->second)},
                   {"full", std::to_string(n->second / threads[k])},
                   {"block", std::to_string(threads[k])},
                   {"rest", std::to_string(n->second % threads[k])}});
    }
    say("types", {{"type", to_string(graph_.type)},
                  {"sums", to_string(is_whole(graph_.type) ? graph_.type : Type::kFloat32)}});
    layouts();
    if (solution_.name.starts_with("vector_4")) say("aligned");
  }

  void layouts() {
    bool has_view = false;
    for (const Value& value : graph_.values) {
      if (value.view == View::kNone) continue;
      say("view", {{"name", value.name},
                   {"strides", joined(strides_of(value.view, sizes_of(graph_, value)))}});
      has_view = true;
    }
    if (!has_view) say("contiguous");
  }

  void dangers() {
    begin_step();
    const std::vector<std::string> kinds = traps_of(graph_, solution_, library_);
    say("traps", {{"count", std::to_string(kinds.size())},
                  {"kinds", fmt::format("{}", fmt::join(kinds, ", "))}});
  }

  static std::string number(size_t index) { return std::to_string(index + 1); }

  const TaskGraph& graph_;
  const Solution& solution_;
  const TemplateLibrary& library_;
  Random random_;
  std::string text_;
  int step_ = 0;
  bool is_first_ = true;
};

}  // namespace

std::string formula_text(const Node& node) {
  if (!node.op->is_pointwise) return node.op->formula;
  const std::string text = with_word(node.op->formula, "c", node.c);
  return with_word(text, "d", node.d);
}

std::string value_name(const TaskGraph& graph, int value) {
  if (graph.value(value).origin != Origin::kNode) return graph.value(value).name;
  const auto output = std::ranges::find(graph.outputs, value);
  if (output != graph.outputs.end()) {
    return graph.outputs.size() == 1 ? "output"
                                     : fmt::format("output {}", output - graph.outputs.begin() + 1);
  }
  return fmt::format("t{}", graph.maker(value) - graph.nodes.data() + 1);
}

std::string mapping_of(const TaskGraph& graph, const Part& part) {
  std::string how = part.used->how;
  for (const auto& [name, value] : part.used->values) {
    how = substituted(std::move(how), "{{" + name + "}}", value);
  }
  const auto& dims = graph.value(part.stage.output).dims;
  return substituted(std::move(how), "{{last}}",
                     dims.empty() ? "1" : graph.extent_text(dims.back()));
}

std::vector<std::string> traps_of(const TaskGraph& graph, const Solution& solution,
                                  const TemplateLibrary& library) {
  std::vector<std::string> kinds;
  for (const Bug& bug : bugs_of(graph, solution, library)) {
    std::string kind = bug.kind;
    std::ranges::replace(kind, '_', ' ');
    if (bug.expected == "compile" || std::ranges::find(kinds, kind) != kinds.end()) continue;
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

std::string metadata_table(const TaskGraph& graph) {
  std::string text = "| tensor | shape | strides | dtype | from |\n|---|---|---|---|---|\n";
  size_t step = 0;
  for (int at = 0; at < static_cast<int>(graph.values.size()); ++at) {
    const Value& value = graph.value(at);
    const std::vector<int64_t> sizes = sizes_of(graph, value);
    const std::string name = value_name(graph, at);
    std::string from = "input";
    const char* dtype = to_string(value.type);
    if (value.origin == Origin::kParameter) from = "parameter";
    if (value.origin == Origin::kNode) {
      from = graph.nodes[step++].op->name;
    }
    text += fmt::format("| {} | {} = [{}] | [{}] | {} | {} |\n", name, shape_text(graph, value),
                        fmt::join(sizes, ", "), fmt::join(strides_of(value.view, sizes), ", "),
                        dtype, from);
  }
  return text;
}

std::string reasoning(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library) {
  return Reasoner(graph, solution, library).run();
}

}  // namespace mc::forge
