// SPDX-License-Identifier: Apache-2.0
#include "forge/reason.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/mutate.h"
#include "forge/random.h"
#include "forge/render.h"

namespace mc::forge {
namespace {

std::vector<int64_t> sizes_of(const TaskGraph& graph, const Value& value) {
  std::vector<int64_t> sizes;
  for (const int dim : value.dims) {
    sizes.push_back(dim == kOne ? 1 : graph.dims.at(static_cast<size_t>(dim)).size);
  }
  return sizes;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

int64_t count_of(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

std::string formula(const Node& node) {
  if (node.head != nullptr) return node.head->text;
  if (node.row != nullptr) return node.row->text;
  std::string text = node.pointwise->text;
  text = substituted(std::move(text), "{c}", node.c);
  text = substituted(std::move(text), "{d}", node.d);
  static constexpr const char* kOperands[] = {"", "y", "s[column]", "c[row]", "u"};
  return substituted(std::move(text), "{u}", kOperands[static_cast<size_t>(node.side)]);
}

class Reasoner {
 public:
  Reasoner(const TaskGraph& graph, const Solution& solution)
      : graph_(graph), solution_(solution), random_(graph.seed, "words", graph.number) {}

  std::string run() {
    return fmt::format("1. {}\n2. {}\n3. {}\n4. {}\n5. {}\n6. {}\n", decomposition(), mathematics(),
                       shapes(), mapping(), boundaries(), dangers());
  }

 private:
  const char* say(std::vector<const char*> phrasings) { return random_.pick(phrasings); }

  std::string decomposition() {
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes) {
      names.push_back(fmt::format("{} ({})", node.name(), family_name(node.family())));
    }
    return fmt::format(
        "{} {}. {}",
        say({"Decomposition: the module computes", "What is computed:", "The forward pass is",
             "In order, the module applies", "Operators in order:", "The graph is the chain"}),
        fmt::join(names, ", then "),
        say({"One kernel does all of it, so nothing goes through memory in between.",
             "All steps fit into one kernel: each value stays in a register.",
             "They are fused: intermediate tensors are never written.",
             "No intermediate result is needed elsewhere, so all of it is one kernel.",
             "Fusing them saves a pass over memory for each step.",
             "A single launch is enough, since every step follows the one before in place."}));
  }

  std::string mathematics() {
    std::string text = say({"Mathematics:", "For one value v:", "Scalar formulas:",
                            "Element by element:", "In formulas:", "Each step as arithmetic:"});
    for (const Node& node : graph_.nodes)
      text += fmt::format(" {}: {};", node.name(), formula(node));
    text.back() = '.';
    const Node* row = graph_.row();
    if (row != nullptr && row->row->passes.size() > 1) {
      text +=
          " The exponentials or squares are taken of differences, so that nothing overflows or "
          "cancels: this needs one pass over the row for each of the two statistics.";
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
    const std::vector<int64_t> out = sizes_of(graph_, graph_.output());
    text += fmt::format(" the output is {} = [{}], {} elements.",
                        shape_text(graph_, graph_.output()), fmt::join(out, ", "), count_of(out));
    return text;
  }

  std::string mapping() {
    const std::string& name = solution_.name;
    const char* how = "";
    if (name == "thread") how = "thread i = blockIdx.x * blockDim.x + threadIdx.x takes element i";
    if (name == "stride")
      how =
          "thread i takes elements i, i + step, i + 2 * step and so on, with step the number of "
          "all threads";
    if (name == "float4")
      how = "thread t takes the elements 4 * t to 4 * t + 3 by one load and one store of 16 bytes";
    if (name == "grid2d") how = "the thread of column j and row r takes element r * m + j";
    if (name == "row_thread") how = "thread r takes row r, whose element j lies at r * m + j";
    if (name == "row_block")
      how =
          "block r takes row r; thread t takes the columns t, t + 128 and so on, and a tree in "
          "shared memory combines the 128 partial results in 7 steps";
    if (name == "row_warp")
      how =
          "warp r takes row r; lane t takes the columns t, t + 32 and so on, and 5 shuffles "
          "combine the 32 partial results";
    if (name == "matmul_naive") how = "thread i takes output row i / m, column i % m";
    if (name == "matmul_tile")
      how =
          "a block takes a 16 x 16 tile of the output and steps through the inner axis in tiles "
          "of 16, which it keeps in shared memory";
    if (name == "matmul_register")
      how =
          "a thread takes 4 rows of one output column and loads each element of the right side "
          "once for all 4";
    return fmt::format("{} {}.",
                       say({"Mapping:", "Who computes what:", "Work distribution:", "Threads:",
                            "Index mapping:", "Assignment:"}),
                       how);
  }

  std::string boundaries() {
    int64_t largest = 0;
    for (const Value& value : graph_.values) {
      largest = std::max(largest, count_of(sizes_of(graph_, value)));
    }
    std::string text = fmt::format(
        "{} sizes need not be multiples of the block's, so every access is behind a comparison "
        "with n or m. The largest tensor has {} elements, far below 2^31: int is enough for "
        "offsets. All tensors are float32 and contiguous, and sums are kept in float32.",
        say({"Boundaries and types:", "Limits:", "Edges and types:", "Safety:", "Tails and types:",
             "Bounds:"}),
        largest);
    if (solution_.name == "float4") {
      text +=
          " PyTorch aligns allocations, so x + i is aligned to 16 bytes where i is a multiple "
          "of 4; what is left over is done one by one.";
    }
    return text;
  }

  std::string dangers() {
    std::vector<std::string> kinds;
    for (const Bug& bug : bugs_of(graph_, solution_)) {
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
  Random random_;
};

}  // namespace

std::string metadata_table(const TaskGraph& graph) {
  std::string text = "| tensor | shape | strides | dtype | from |\n|---|---|---|---|---|\n";
  size_t step = 0;
  for (const Value& value : graph.values) {
    const std::vector<int64_t> sizes = sizes_of(graph, value);
    std::string name = value.name, from = "input";
    if (value.origin == Origin::kParameter) from = "parameter";
    if (value.origin == Origin::kNode) {
      from = graph.nodes[step].name();
      name = ++step == graph.nodes.size() ? "output" : fmt::format("t{}", step);
    }
    text +=
        fmt::format("| {} | {} = [{}] | [{}] | float32 | {} |\n", name, shape_text(graph, value),
                    fmt::join(sizes, ", "), fmt::join(strides_of(sizes), ", "), from);
  }
  return text;
}

std::string reasoning(const TaskGraph& graph, const Solution& solution) {
  return Reasoner(graph, solution).run();
}

}  // namespace mc::forge
