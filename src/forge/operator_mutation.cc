// SPDX-License-Identifier: Apache-2.0
#include "forge/operator_mutation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "forge/interpret.h"
#include "forge/reason.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

constexpr int kTriesMax = 12;  // The maximum number of tries of one operator mutation.
// The minimum difference of some element, relative to its size.
constexpr double kDifferenceMin = 0.01;

struct MutatedGraph {
  TaskGraph graph;  // The graph that the kernels compute instead.
  std::string kind, cause, fix;
};

std::string text_of(const Node& node) {
  return fmt::format("{} ({})", node.op->name, formula_text(node));
}

bool have_same_axes(const std::vector<Axis>& one, const std::vector<Axis>& other) {
  return std::ranges::equal(one, other, [](const Axis& a, const Axis& b) {
    return a.name == b.name && a.extent.has_value() == b.extent.has_value();
  });
}

// True if one form's loops and operands can replace the other's.
bool have_same_form(const Form& one, const Form& other) {
  const auto same_operand = [](const Operand& a, const Operand& b) {
    return a.kind == b.kind && a.name == b.name && have_same_axes(a.axes, b.axes);
  };
  return have_same_axes(one.out, other.out) && have_same_axes(one.inner, other.inner) &&
         one.scan.has_value() == other.scan.has_value() &&
         std::ranges::equal(one.operands, other.operands, same_operand);
}

bool may_replace(const Node& node, const Operator& other) {
  if (&other == node.op || other.is_pointwise != node.op->is_pointwise) return false;
  if (other.is_whole != node.op->is_whole || other.forms.size() != node.op->forms.size()) {
    return false;
  }
  if (other.is_pointwise) return other.num_operands() == node.op->num_operands();
  return have_same_form(*node.form,
                        other.forms.at(static_cast<size_t>(node.form - node.op->forms.data())));
}

std::optional<MutatedGraph> replaced(const TaskGraph& graph, size_t i,
                                     const std::vector<Operator>& operators, Random& random) {
  const Node& node = graph.nodes[i];
  std::vector<const Operator*> others;
  for (const Operator& other : operators) {
    if (may_replace(node, other)) others.push_back(&other);
  }
  if (others.empty()) return std::nullopt;
  MutatedGraph made{graph, "wrong_operation", "", ""};
  Node& changed = made.graph.nodes[i];
  const auto form = static_cast<size_t>(node.form - node.op->forms.data());
  changed.op = random.pick(others);
  changed.form = &changed.op->forms.at(form);
  if (!changed.op->literals.empty()) {
    const std::string& literals = changed.op->literals.front();
    const size_t comma = literals.find(',');
    if (changed.c.empty()) changed.c = literals.substr(0, comma);
    if (comma != std::string::npos) changed.d = literals.substr(comma + 1);
  }
  made.cause = fmt::format("The kernel computes {} where the module has {}.", text_of(changed),
                           text_of(node));
  made.fix = fmt::format("Compute {}.", text_of(node));
  return made;
}

std::optional<MutatedGraph> left_out(const TaskGraph& graph, size_t i) {
  MC_CHECK(!graph.nodes.at(i).operands.empty());
  const Node node = graph.nodes[i];
  const int operand = node.operands.front();
  const Value &before = graph.value(operand), &after = graph.value(node.output);
  const bool is_result = std::ranges::find(graph.outputs, node.output) != graph.outputs.end();
  if (before.dims != after.dims || before.type != after.type) return std::nullopt;
  if (is_result && before.origin != Origin::kNode) return std::nullopt;
  MutatedGraph made{graph, "missing_operation", "", ""};
  made.graph.nodes.erase(made.graph.nodes.begin() + static_cast<std::ptrdiff_t>(i));
  for (Node& other : made.graph.nodes) {
    std::ranges::replace(other.operands, node.output, operand);
  }
  std::ranges::replace(made.graph.outputs, node.output, operand);
  made.cause = fmt::format("{} of the module is left out.", text_of(node));
  made.fix = fmt::format("Compute {} too.", text_of(node));
  return made;
}

// Exchanges the operator of this node with that of the next; each node keeps its other operands.
std::optional<MutatedGraph> exchanged(const TaskGraph& graph, size_t i) {
  if (i + 1 >= graph.nodes.size()) return std::nullopt;
  const Node &one = graph.nodes[i], &next = graph.nodes[i + 1];
  const bool follows = next.operands.front() == one.output && graph.num_uses(one.output) == 1;
  const bool are_plain = one.op->is_pointwise && next.op->is_pointwise && one.op != next.op;
  const auto& dims = graph.value(one.operands.front()).dims;
  if (!follows || !are_plain || dims != graph.value(one.output).dims ||
      dims != graph.value(next.output).dims) {
    return std::nullopt;
  }
  for (size_t k = 1; k < next.operands.size(); ++k) {
    if (next.operands[k] == one.output) return std::nullopt;
  }
  MutatedGraph made{graph, "operations_in_wrong_order", "", ""};
  Node &first = made.graph.nodes[i], &second = made.graph.nodes[i + 1];
  std::swap(first, second);
  std::swap(first.output, second.output);
  std::swap(first.operands.front(), second.operands.front());
  made.cause = fmt::format("The kernel computes {} before {}, and the module after it.",
                           text_of(next), text_of(one));
  made.fix = fmt::format("Compute {} first, then {}.", text_of(one), text_of(next));
  return made;
}

// True if the results differ from the task's and are finite.
bool is_telling(const TaskGraph& graph, const TaskGraph& changed) {
  const std::vector<Array> mine = interpret(graph), theirs = interpret(changed);
  bool differs = false;
  for (size_t k = 0; k < graph.outputs.size(); ++k) {
    const auto& right = mine.at(static_cast<size_t>(graph.outputs[k])).values;
    const auto& wrong = theirs.at(static_cast<size_t>(changed.outputs[k])).values;
    if (right.size() != wrong.size()) return false;
    for (size_t j = 0; j < right.size(); ++j) {
      if (!std::isfinite(wrong[j])) return false;
      differs =
          differs || std::abs(right[j] - wrong[j]) > kDifferenceMin * (1 + std::abs(right[j]));
    }
  }
  return differs;
}

// Renames the kernels and values of the changed graph to those of the task's solution, so that the
// names do not reveal the change.
std::string with_names_of(const TaskGraph& graph, const Solution& solution,
                          const TaskGraph& changed, const Solution& other) {
  std::map<std::string, std::string> names = {
      {function_of(other.cuda), function_of(solution.cuda)}};
  const auto value_name = [](const TaskGraph& owner, const Part& part) {
    return fmt::format("{}_{}", owner.maker(part.stage.output)->op->name, part.stage.output);
  };
  for (size_t i = 0; i < std::min(other.parts.size(), solution.parts.size()); ++i) {
    const Part &theirs = other.parts[i], &ours = solution.parts[i];
    names[theirs.kernel] = ours.kernel;
    names[theirs.kernel + "_finish"] = ours.kernel + "_finish";
    names[value_name(changed, theirs)] = value_name(graph, ours);
  }
  return renamed(other.cuda, names);
}

// The solution of the changed graph with the same templates, or else its first solution.
std::optional<std::string> cuda_of(const TaskGraph& graph, const TaskGraph& changed,
                                   const Solution& solution, const TemplateLibrary& library) {
  const std::vector<Solution> made = solutions_of(changed, library);
  if (made.empty()) return std::nullopt;
  const auto same = std::ranges::find(made, solution.name, &Solution::name);
  return with_names_of(graph, solution, changed, same == made.end() ? made.front() : *same);
}

// The first line from `begin` on that `before` lacks and that computes something, or `begin`:
// leaving out an operator may also change the declarations of the kernel and of the host function.
size_t first_new_line(const std::string& before, const std::string& after, size_t begin) {
  for (size_t at = after.rfind('\n', begin) + 1; at < after.size();) {
    const size_t end = std::min(after.find('\n', at), after.size());
    const std::string line = after.substr(at, end - at);
    const bool is_head = line.find("__global__") != std::string::npos ||
                         line.find("<<<") != std::string::npos || line.starts_with("torch::");
    if (!is_head && before.find("\n" + line + "\n") == std::string::npos) {
      return std::max(at, begin);
    }
    at = end + 1;
  }
  return begin;
}

// The difference of two texts, as one edit of the first.
Bug edit_of(const std::string& before, const std::string& after) {
  const size_t shared = std::min(before.size(), after.size());
  size_t begin = 0, end = 0;
  while (begin < shared && before[begin] == after[begin]) ++begin;
  while (end < shared - begin && before[before.size() - 1 - end] == after[after.size() - 1 - end]) {
    ++end;
  }
  MC_CHECK(begin + end <= shared);
  Bug bug;
  bug.offset = begin;
  bug.size = before.size() - end - begin;
  bug.text = after.substr(begin, after.size() - end - begin);
  bug.shown = std::min(first_new_line(before, after, begin) - begin, bug.text.size());
  return bug;
}

std::optional<MutatedGraph> drawn(const TaskGraph& graph, const std::vector<Operator>& operators,
                                  Random& random) {
  const auto i = static_cast<size_t>(random.below(static_cast<int>(graph.nodes.size())));
  const double kind = random.unit();
  if (kind < 0.5) return replaced(graph, i, operators, random);
  return kind < 0.8 ? left_out(graph, i) : exchanged(graph, i);
}

}  // namespace

std::optional<Bug> operator_mutation_of(const TaskGraph& graph, const Solution& solution,
                                        const TemplateLibrary& library,
                                        const std::vector<Operator>& operators, Random& random) {
  if (graph.gradient || graph.nodes.empty()) return std::nullopt;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    const std::optional<MutatedGraph> made = drawn(graph, operators, random);
    if (!made || made->graph.nodes.empty() || !is_telling(graph, made->graph)) continue;
    const std::optional<std::string> cuda = cuda_of(graph, made->graph, solution, library);
    if (!cuda || *cuda == solution.cuda) continue;
    Bug bug = edit_of(solution.cuda, *cuda);
    bug.kind = made->kind;
    bug.expected = "wrong";
    bug.cause = made->cause;
    bug.fix = made->fix;
    return bug;
  }
  return std::nullopt;
}

}  // namespace mc::forge
