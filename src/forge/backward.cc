// SPDX-License-Identifier: Apache-2.0
#include "forge/backward.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"

namespace mc::forge {
namespace {

constexpr size_t kGradientsMax = 3;
// The probability with which a gradient is taken with respect to an input or parameter.
constexpr double kShare = 0.6;

class BackwardBuilder {
 public:
  BackwardBuilder(const std::vector<Operator>& operators, Draft& draft)
      : operators_(operators), draft_(draft), output_(draft.graph.outputs.front()) {}

  bool run() {
    MC_CHECK(draft_.graph.outputs.size() == 1);
    choose();
    if (by_.empty()) return false;
    const size_t num_forward = draft_.graph.nodes.size();
    gradients_[output_] = add_upstream();
    const int upstream = gradients_[output_];
    for (size_t i = num_forward; i-- > 0;) {
      if (!pass_on(i)) return false;
    }
    TaskGraph& graph = draft_.graph;
    graph.gradient = Gradient{num_forward, output_, upstream, {}};
    graph.outputs.clear();
    for (const int value : by_) {
      const int found = gradients_.at(value);
      const bool is_new = std::ranges::find(graph.outputs, found) == graph.outputs.end();
      if (graph.value(found).origin != Origin::kNode || !is_new) continue;
      graph.outputs.push_back(found);
      graph.gradient->by.push_back(value);
    }
    return !graph.outputs.empty() && depends_on_all();
  }

 private:
  // The operator that computes the gradient with respect to an operand, or null.
  const Operator* gradient_of(const Node& node, size_t operand) const {
    const Value& value = draft_.graph.value(node.operands[operand]);
    const bool is_broadcast =
        node.op->is_pointwise && value.dims != draft_.graph.value(node.output).dims;
    const std::string& name = node.form->operands[operand].name;
    const auto found = std::ranges::find(node.op->gradients, name, &Operator::gradient_of);
    return is_broadcast || found == node.op->gradients.end() ? nullptr : &*found;
  }

  // Chooses the values with respect to which the output is differentiated, and marks the values
  // that depend on them.
  void choose() {
    const TaskGraph& graph = draft_.graph;
    std::vector<bool> can(graph.values.size(), true);
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const bool is_open =
            can[static_cast<size_t>(node.output)] && gradient_of(node, k) != nullptr;
        if (!is_open) can[static_cast<size_t>(node.operands[k])] = false;
      }
    }
    std::vector<int> choices;
    std::ranges::copy_if(graph.given(), std::back_inserter(choices), [&](int value) {
      return can[static_cast<size_t>(value)] && graph.value(value).draw != Draw::kIndex;
    });
    for (const int value : choices) {
      const bool is_last = by_.empty() && value == choices.back();
      if (by_.size() < kGradientsMax && (draft_.random.chance(kShare) || is_last)) {
        by_.push_back(value);
      }
    }
    needed_.insert(by_.begin(), by_.end());
    for (const Node& node : graph.nodes) {
      const auto is_needed = [&](int operand) { return needed_.contains(operand); };
      if (std::ranges::any_of(node.operands, is_needed)) needed_.insert(node.output);
    }
  }

  int add_upstream() {
    const auto dims = draft_.graph.value(output_).dims;
    Value value{
        Origin::kInput,   draft_.free_name("grad"), "", dims, Draw::kNormal, Value::kNoDim, "",
        draft_.graph.type};
    if (dims.empty()) value.draw = Draw::kPositive;
    return draft_.add_given(std::move(value));
  }

  // Adds the gradients with respect to a node's operands, from that with respect to its output.
  bool pass_on(size_t number) {
    const Node node = draft_.graph.nodes[number];
    const auto given = gradients_.find(node.output);
    if (given == gradients_.end()) return true;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      if (!needed_.contains(node.operands[k])) continue;
      const int found = gradient(node, *gradient_of(node, k), given->second);
      if (found < 0 || !accumulate(node.operands[k], found)) return false;
    }
    return true;
  }

  int gradient(const Node& node, const Operator& op, int given) {
    Node made;
    made.op = &op;
    made.form = &op.forms.at(static_cast<size_t>(node.form - node.op->forms.data()));
    if (made.form->result.kind == Expr::Kind::kName && op.is_pointwise) return given;
    made.axes = node.axes;
    made.c = node.c, made.d = node.d;
    for (const Operand& operand : made.form->operands) {
      const auto found = std::ranges::find(node.form->operands, operand.name, &Operand::name);
      made.operands.push_back(
          found == node.form->operands.end()
              ? given
              : node.operands[static_cast<size_t>(found - node.form->operands.begin())]);
    }
    return draft_.complete(made, Sense::kFiniteOnly) ? draft_.graph.nodes.back().output : -1;
  }

  // Adds up the gradients of several uses of a value.
  bool accumulate(int value, int found) {
    const auto [known, is_new] = gradients_.emplace(value, found);
    if (is_new) return true;
    const auto add = std::ranges::find(operators_, "add", &Operator::name);
    if (add == operators_.end()) return false;
    Node sum;
    sum.op = &*add;
    sum.form = &add->forms.front();
    sum.axes["*"] = draft_.graph.value(value).dims;
    sum.operands = {known->second, found};
    if (!draft_.complete(sum, Sense::kFiniteOnly)) return false;
    known->second = draft_.graph.nodes.back().output;
    return true;
  }

  bool depends_on_all() const {
    const TaskGraph& graph = draft_.graph;
    std::set<int> reached(graph.outputs.begin(), graph.outputs.end());
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      const Node& node = graph.nodes[i];
      if (reached.contains(node.output)) reached.insert(node.operands.begin(), node.operands.end());
    }
    const auto is_reached = [&](int value) { return reached.contains(value); };
    return std::ranges::all_of(graph.given(), is_reached);
  }

  const std::vector<Operator>& operators_;
  Draft& draft_;
  int output_;
  std::vector<int> by_;
  std::set<int> needed_;          // The values that depend on those in by_.
  std::map<int, int> gradients_;  // The gradient with respect to each value.
};

}  // namespace

bool add_gradients(const std::vector<Operator>& operators, Draft& draft) {
  return draft.graph.outputs.size() == 1 && BackwardBuilder(operators, draft).run();
}

}  // namespace mc::forge
