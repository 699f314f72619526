// SPDX-License-Identifier: Apache-2.0
#include "forge/stage.h"

#include <algorithm>
#include <set>

namespace mc::forge {
namespace {

bool has(const std::vector<int>& values, int value) {
  return std::ranges::find(values, value) != values.end();
}

// True if a formula reads the tensor at explicit indices.
bool accesses(const Expr& expr, size_t operand) {
  if (expr.kind == Expr::Kind::kAccess && expr.slot == static_cast<int>(operand)) return true;
  return std::ranges::any_of(expr.args, [&](const Expr& arg) { return accesses(arg, operand); });
}

bool accesses(const Form& form, size_t operand) {
  return accesses(form.result, operand) || (form.scan && accesses(*form.scan, operand)) ||
         std::ranges::any_of(form.passes, [&](const Pass& pass) {
           return accesses(pass.element, operand) ||
                  (pass.finish && accesses(*pass.finish, operand));
         });
}

class Planner {
 public:
  explicit Planner(const TaskGraph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.values.size(); ++i) {
      if (graph.values[i].origin != Origin::kNode) in_memory_.push_back(static_cast<int>(i));
    }
  }

  std::vector<Stage> run() {
    for (const int output : graph_.outputs) materialise(output);
    return std::move(stages_);
  }

 private:
  void materialise(int value) {
    if (has(in_memory_, value)) return;
    const Node* maker = graph_.maker(value);
    Stage stage{maker->op->is_pointwise ? core_of(value) : maker, value, {}};
    const int core_output = stage.core == nullptr ? -1 : stage.core->output;
    prepare(value, core_output);
    stage.nodes = cone_of(graph_, value, in_memory_, core_output);
    if (stage.core != nullptr) {
      for (size_t i = 0; i < stage.core->operands.size(); ++i) {
        const int operand = stage.core->operands[i];
        accesses(*stage.core->form, i) ? materialise(operand) : prepare(operand, -1);
      }
    }
    in_memory_.push_back(value);
    stages_.push_back(std::move(stage));
  }

  // Puts the outputs of nests on which a value depends into memory.
  void prepare(int value, int stop) {
    for (const int nest : nests_above(value)) {
      if (nest != stop && nest != value) materialise(nest);
    }
    const Node* maker = graph_.maker(value);
    if (value != stop && maker != nullptr && !maker->op->is_pointwise && stop == -1) {
      materialise(value);
    }
  }

  std::vector<int> nests_above(int value) const {
    std::vector<int> found;
    const auto add = [&](int operand) {
      const Node* maker = graph_.maker(operand);
      const bool is_nest = maker != nullptr && !maker->op->is_pointwise;
      if (is_nest && !has(in_memory_, operand) && !has(found, operand)) found.push_back(operand);
    };
    for (const Node* node : cone_of(graph_, value, in_memory_, -1)) {
      for (const int operand : node->operands) add(operand);
    }
    std::ranges::sort(found);
    return found;
  }

  // The last nest of the same shape on which a value depends and that only this value needs; it
  // becomes the core.
  const Node* core_of(int value) const {
    const auto nodes = cone_of(graph_, value, in_memory_, -1);
    const std::vector<int> nests = nests_above(value);
    for (size_t i = nests.size(); i-- > 0;) {
      if (graph_.value(nests[i]).dims != graph_.value(value).dims) continue;
      int uses = 0;
      for (const Node* node : nodes) uses += has(node->operands, nests[i]) ? 1 : 0;
      if (uses == graph_.num_uses(nests[i])) return graph_.maker(nests[i]);
    }
    return nullptr;
  }

  const TaskGraph& graph_;
  std::vector<int> in_memory_;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<const Node*> cone_of(const TaskGraph& graph, int value,
                                 const std::vector<int>& in_memory, int stop) {
  std::set<int> wanted = {value};
  std::vector<const Node*> nodes;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const bool is_wanted = wanted.contains(node.output) && node.op->is_pointwise;
    if (!is_wanted || node.output == stop || has(in_memory, node.output)) continue;
    nodes.insert(nodes.begin(), &node);
    wanted.insert(node.operands.begin(), node.operands.end());
  }
  return nodes;
}

std::vector<Stage> stages_of(const TaskGraph& graph) { return Planner(graph).run(); }

}  // namespace mc::forge
