// SPDX-License-Identifier: Apache-2.0
#include "forge/reason.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/mutate.h"
#include "forge/random.h"
#include "forge/render.h"
#include "forge/text.h"
#include "forge/views.h"

namespace mc::forge {
namespace {

std::vector<int64_t> sizes_of(const TaskGraph& graph, const Value& value) {
  std::vector<int64_t> sizes;
  for (const int dim : value.dims) {
    sizes.push_back(graph.shown_size_of(dim));
  }
  return sizes;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

std::string formula(const Node& node) {
  if (!node.op->is_pointwise) return node.op->formula;
  const std::string text = with_word(node.op->formula, "c", node.c);
  return with_word(text, "d", node.d);
}

class Reasoner {
 public:
  Reasoner(const TaskGraph& graph, const Solution& solution, const TemplateLibrary& library)
      : graph_(graph),
        solution_(solution),
        library_(library),
        random_(graph.seed, "words", graph.number) {}

  std::string run() {
    return fmt::format("1. {}\n2. {}\n3. {}\n4. {}\n5. {}\n6. {}\n", decomposition(), mathematics(),
                       shapes(), mapping(), boundaries(), dangers());
  }

 private:
  const char* say(std::vector<const char*> phrasings) { return random_.pick(phrasings); }

  std::string decomposition() {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes) {
      names.push_back(fmt::format("{} ({})", node.op->name, node.op->family));
    }
    return fmt::format(
        "{} {}. {}",
        say({"Decomposition: the module computes", "What is computed:", "The forward pass is",
             "In order, the module applies", "Operators in order:", "The graph computes"}),
        fmt::join(names, ", then "),
        solution_.parts.size() > 1
            ? several_kernels()
            : say({"One kernel does all of it, so nothing goes through memory in between.",
                   "All steps fit into one kernel: each value stays in a register.",
                   "They are fused: intermediate tensors are never written.",
                   "No intermediate result is needed elsewhere, so all of it is one kernel.",
                   "Fusing them saves a pass over memory for each step.",
                   "A single launch is enough, since every step follows the one before in "
                   "place."}));
  }

  std::string mathematics() {
    std::string text = say({"Mathematics:", "For one value v:", "Scalar formulas:",
                            "Element by element:", "In formulas:", "Each step as arithmetic:"});
    for (const Node& node : graph_.nodes) {
      text += fmt::format(" {}: {};", node.op->name, formula(node));
    }
    text.back() = '.';
    const bool has_two_passes = std::ranges::any_of(graph_.nodes, [](const Node& node) {
      return node.op->scheme == "online" || node.op->scheme == "moments";
    });
    if (has_two_passes) {
      text +=
          " The exponentials or squares are taken of differences, so that nothing overflows or "
          "cancels.";
    }
    return text;
  }

  std::string shapes() {
    std::string text = say({"Shapes:", "Sizes:", "Shape by shape:", "With the task's sizes:",
                            "Following the shapes:", "Tensor sizes:"});
    for (const int input : graph_.inputs()) {
      const Value& value = graph_.values.at(static_cast<size_t>(input));
      text += fmt::format(" {} is {} = [{}];", value.name, shape_text(graph_, value),
                          fmt::join(sizes_of(graph_, value), ", "));
    }
    for (const int output : graph_.outputs) {
      const Value& value = graph_.value(output);
      const std::vector<int64_t> out = sizes_of(graph_, value);
      text += fmt::format(" the output is {} = [{}], {} elements;", shape_text(graph_, value),
                          fmt::join(out, ", "), count_of(out));
    }
    text.back() = '.';
    return text;
  }

  std::string several_kernels() const {
    return fmt::format(
        "{} kernels are needed, since each operator with sums over other elements reads what the "
        "one before has written; pointwise steps are computed where their operand is.",
        solution_.parts.size());
  }

  std::string mapping() {
    std::vector<std::string> kernels;
    for (const Part& part : solution_.parts) {
      std::string how = part.used->how;
      for (const auto& [name, value] : part.used->values) {
        how = substituted(std::move(how), "{{" + name + "}}", value);
      }
      const auto& dims = graph_.value(part.stage.output).dims;
      const std::string last = dims.empty() ? "1" : graph_.extent_text(dims.back());
      kernels.push_back(substituted(std::move(how), "{{last}}", last));
    }
    return fmt::format("{} {}.",
                       say({"Mapping:", "Who computes what:", "Work distribution:", "Threads:",
                            "Index mapping:", "Assignment:"}),
                       fmt::join(kernels, "; in the next kernel "));
  }

  std::string boundaries() {
    int64_t largest = 0;
    for (const Value& value : graph_.values) {
      largest = std::max(largest, count_of(sizes_of(graph_, value)));
    }
    std::string text = fmt::format(
        "{} sizes need not be multiples of the block's, so every access is behind a comparison "
        "with n or m. The largest tensor has {} elements, far below 2^31: int is enough for "
        "offsets. Values are {}, indices int64, {}, and sums are kept in {}.",
        say({"Boundaries and types:", "Limits:", "Edges and types:", "Safety:", "Tails and types:",
             "Bounds:"}),
        largest, to_string(graph_.type), layouts(),
        is_whole(graph_.type) ? to_string(graph_.type) : to_string(Type::kFloat32));
    if (solution_.name.starts_with("vector_4")) {
      text +=
          " PyTorch aligns allocations, so x + t is aligned to 16 bytes where t is a multiple "
          "of 4; what is left over is done one by one.";
    }
    return text;
  }

  std::string layouts() const {
    for (const Value& value : graph_.values) {
      if (value.view == View::kNone) continue;
      return fmt::format("{} is a view with strides [{}], all other tensors are contiguous",
                         value.name,
                         fmt::join(strides_of(value.view, sizes_of(graph_, value)), ", "));
    }
    return "all tensors are contiguous";
  }

  std::string dangers() {
    std::vector<std::string> kinds;
    for (const Bug& bug : bugs_of(graph_, solution_, library_)) {
      if (bug.expected == "compile") continue;
      if (std::ranges::find(kinds, bug.kind) == kinds.end()) kinds.push_back(bug.kind);
    }
    for (std::string& kind : kinds) std::ranges::replace(kind, '_', ' ');
    return fmt::format("{} {}.",
                       say({"To check:", "What could go wrong:", "Known traps:",
                            "Before answering, rule out:", "Mistakes to avoid:", "Checks:"}),
                       fmt::join(kinds, ", "));
  }

  const TaskGraph& graph_;
  const Solution& solution_;
  const TemplateLibrary& library_;
  Random random_;
};

}  // namespace

std::string metadata_table(const TaskGraph& graph) {
  std::string text = "| tensor | shape | strides | dtype | from |\n|---|---|---|---|---|\n";
  size_t step = 0;
  for (int at = 0; at < static_cast<int>(graph.values.size()); ++at) {
    const Value& value = graph.value(at);
    const std::vector<int64_t> sizes = sizes_of(graph, value);
    std::string name = value.name, from = "input";
    const char* dtype = to_string(value.type);
    if (value.origin == Origin::kParameter) from = "parameter";
    if (value.origin == Origin::kNode) {
      from = graph.nodes[step++].op->name;
      const auto output = std::ranges::find(graph.outputs, at);
      name = output == graph.outputs.end() ? fmt::format("t{}", step) : "output";
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
