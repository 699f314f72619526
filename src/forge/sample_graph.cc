// SPDX-License-Identifier: Apache-2.0
//
// A graph grows forward.  Its focus is a family, of which it always contains an operator.  A node
// mostly takes the newest value; sometimes it takes an older one, which creates a branch, and a
// binary operator joins two values.  The values that no node uses at the end are the results.
#include "forge/sample_graph.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "forge/backward.h"
#include "forge/draft.h"
#include "forge/random.h"
#include "forge/sizes.h"
#include "forge/text.h"
#include "forge/views.h"

namespace mc::forge {
namespace {

constexpr int kDrawsMax = 24;   // The maximum number of draws of one operator.
constexpr int kGraphsMax = 24;  // The maximum number of draws of one task.
constexpr int kResultsMax = 3;
constexpr std::string_view kInteger = "integer";  // The family of integer operators.
// The maximum number of operators before the gradient is taken.
constexpr int kBackwardDepthMax = 3;

class GraphSampler {
 public:
  GraphSampler(const std::vector<Operator>& operators, uint64_t seed, uint64_t number,
               const GraphOptions& options)
      : operators_(operators), options_(options), draft_(seed, number) {
    for (const Operator& op : operators_) {
      if (allows(op)) allowed_.push_back(&op);
    }
  }

  std::optional<TaskGraph> run() {
    for (int i = 0; i < kGraphsMax; ++i) {
      if (!try_once()) continue;
      bind_sizes(draft_.graph);
      if (draft_.random.chance(options_.views_share)) draw_view(draft_.graph);
      draft_.graph.shown = options_.size;
      draft_.graph.style = options_.style;
      return std::move(draft_.graph);
    }
    return std::nullopt;
  }

 private:
  bool try_once() {
    draft_.clear();
    const std::vector<std::string> families(options_.families.begin(), options_.families.end());
    std::string family = draft_.random.pick(families);
    is_backward_ = family == kBackward;
    if (is_backward_) {
      const Operator* base = pick_differentiable();
      if (base == nullptr) return false;
      family = base->family;
    }
    draft_.graph.type = draw_type(family);
    const int depth =
        1 + draft_.random.below(is_backward_ ? std::min(options_.depth, kBackwardDepthMax)
                                             : options_.depth);
    const int place = draft_.random.below(depth);
    // Every binary operator can broadcast; half of this family's tasks use its own operators.
    const bool broadcasts =
        family == "broadcast" && (options_.operators.empty() && draft_.random.chance(0.5));
    const bool is_pointwise = family == "elementwise" || broadcasts;
    const Operator* focus = is_pointwise ? nullptr : pick_from(family);
    if (!is_pointwise && focus == nullptr && family != "broadcast") return false;
    if (!begin(focus)) return false;
    for (int i = 0; i < depth; ++i) {
      const bool is_focus = i == place;
      if (!is_focus || focus == nullptr) {
        if (!add_some(is_focus ? family : "")) return false;
        continue;
      }
      if (!add_focus(*focus)) return false;
      for (size_t k = 0; k < focus->then.size() && i + 1 < depth; ++k) {
        const Operator* next = find(draft_.random.pick(focus->then[k]));
        if (next != nullptr && allows(*next) && add_focus(*next)) ++i;
      }
    }
    return finish();
  }

  bool allows(const Operator& op) const {
    return options_.operators.empty() || options_.operators.contains(op.name);
  }

  const Operator* find(const std::string& name) const {
    const auto found = std::ranges::find(operators_, name, &Operator::name);
    return found == operators_.end() ? nullptr : &*found;
  }

  // The default type is more frequent than the others.
  Type draw_type(const std::string& family) {
    std::vector<Type> types(options_.types.begin(), options_.types.end());
    if (family == kInteger) types = {Type::kInt32, Type::kInt64};
    if (types.size() == 1) return types.front();
    if (options_.types.contains(Type::kFloat32) && family != kInteger) {
      types.insert(types.end(), types.size(), Type::kFloat32);
    }
    return draft_.random.pick(types);
  }

  // True if the operator is allowed: a backward task needs operators with a gradient, and an
  // integer task needs integer operators.
  bool suits(const Operator& op) const {
    return op.is_whole == is_whole(draft_.graph.type) && (!is_backward_ || !op.gradients.empty());
  }

  const Operator* pick_from(const std::string& family) {
    std::vector<const Operator*> choices;
    for (const Operator* op : allowed_) {
      if (op->family == family && suits(*op)) choices.push_back(op);
    }
    return choices.empty() ? nullptr : draft_.random.pick(choices);
  }

  // Draws a family first, so that families with many operators do not dominate.
  const Operator* pick_differentiable() {
    std::set<std::string> names;
    for (const Operator* op : allowed_) {
      if (!op->gradients.empty()) names.insert(op->family);
    }
    const std::vector<std::string> families(names.begin(), names.end());
    return families.empty() ? nullptr : pick_from(draft_.random.pick(families));
  }

  // ---- Sizes

  // Draws the first input, in a shape for the focus if possible, so that its operator fits.
  bool begin(const Operator* focus) {
    std::vector<std::string> names;
    bool is_free = true;
    if (focus != nullptr) {
      for (const Axis& axis : focus->forms.front().operands.front().axes) {
        if (axis.name != "*") names.push_back(axis.name);
        if (axis.name != "*") is_free = is_free && axis.name == "m";
      }
      is_free = focus->forms.front().operands.front().axes.front().name == "*";
    }
    std::vector<int> dims;
    const size_t fixed = names.size();
    if (is_free) {
      const bool is_deep = options_.style == Style::kFull && draft_.random.chance(0.4);
      size_t rank = std::max<size_t>(fixed + 1, is_deep ? 3 : 2);
      if (rank > 2) dims.push_back(draft_.add_dim("B", 2, 6));
      if (rank > 3) dims.push_back(draft_.add_dim("C", 4, 8));
      const bool is_wide = fixed < 2;
      dims.push_back(draft_.add_dim("N", 16, rank == 2 ? 64 : 24));
      dims.push_back(draft_.add_dim("M", is_wide ? 24 : 16, is_wide ? 128 : 48));
    } else {
      const size_t spatial = num_spatial(names);
      for (const std::string& name : names) {
        const std::string wanted = upper(without_digits(name));
        const bool is_space = wanted == "H" || wanted == "W" || wanted == "D" || wanted == "L";
        if (wanted == "N") {
          dims.push_back(draft_.add_dim("N", spatial > 0 ? 4 : 16, spatial > 0 ? 6 : 64));
        } else if (wanted == "B") {
          dims.push_back(draft_.add_dim("B", 4, 6));
        } else if (is_space) {
          const int high = spatial == 1 ? 64 : spatial == 2 ? 17 : 9;
          dims.push_back(draft_.add_dim(wanted, spatial == 1 ? 16 : spatial == 2 ? 8 : 6, high));
        } else {
          dims.push_back(draft_.add_dim(wanted, 4, spatial > 0 ? 8 : 48));
        }
      }
    }
    if (focus != nullptr) draft_.make_even(*focus, dims);
    const bool is_float = !is_whole(draft_.graph.type);
    const bool needs_positive = is_float && focus == nullptr && draft_.random.chance(0.15);
    draft_.add_input(dims, needs_positive ? Draw::kPositive : Draw::kNormal);
    return true;
  }

  static size_t num_spatial(const std::vector<std::string>& names) {
    return static_cast<size_t>(std::ranges::count_if(names, [](const std::string& axis) {
      const std::string name = without_digits(axis);
      return name == "h" || name == "w" || name == "d" || name == "l";
    }));
  }

  // ---- Values

  // The newest value, or sometimes an older one.
  int pick_value() {
    const int last = static_cast<int>(draft_.graph.values.size()) - 1;
    std::vector<int> older;
    for (int i = 0; i <= last; ++i) {
      const Value& value = draft_.graph.values[static_cast<size_t>(i)];
      const bool flows = value.origin == Origin::kNode ||
                         (value.origin == Origin::kInput && value.draw != Draw::kIndex);
      if (flows && !value.dims.empty()) older.push_back(i);
    }
    if (older.empty()) return -1;
    const bool is_single = draft_.graph.nodes.size() < 2 || options_.depth < 3;
    if (is_single || draft_.random.chance(0.85)) return newest();
    return draft_.random.pick(older);
  }

  int newest() const { return draft_.graph.nodes.empty() ? 0 : draft_.graph.nodes.back().output; }

  // ---- Nodes

  bool add_focus(const Operator& op) {
    for (int i = 0; i < kDrawsMax; ++i) {
      if (try_operator(op, newest())) return true;
    }
    return false;
  }

  bool add_some(const std::string& focus) {
    for (int i = 0; i < kDrawsMax * 3 && !allowed_.empty(); ++i) {
      const Operator& op = *draft_.random.pick(allowed_);
      const bool is_heavy = !op.is_pointwise;
      if (!suits(op)) continue;
      if (is_heavy && (!focus.empty() || !options_.families.contains(op.family))) continue;
      if (is_heavy &&
          (op.is_rare || num_heavy() >= 1 + options_.depth / 4 || draft_.random.chance(0.8))) {
        continue;
      }
      broadcasts_ = focus == "broadcast";
      if (broadcasts_ && op.num_operands() < 2) continue;
      const Node* before = draft_.graph.nodes.empty() ? nullptr : &draft_.graph.nodes.back();
      if (before != nullptr && before->op == &op && op.num_operands() < 2) continue;
      const int value = pick_value();
      if (value >= 0 && try_operator(op, value)) return true;
    }
    return false;
  }

  int num_heavy() const {
    return static_cast<int>(std::ranges::count_if(
        draft_.graph.nodes, [](const Node& node) { return !node.op->is_pointwise; }));
  }

  // Adds the operator; restores the graph if it does not fit.
  bool try_operator(const Operator& op, int value) {
    const Draft::Mark mark = draft_.mark();
    if (add_operator(op, value)) return true;
    draft_.restore(mark);
    return false;
  }

  bool add_operator(const Operator& op, int value) {
    const Interval interval = draft_.interval(value);
    if (interval.low < op.low || interval.high > op.high) return false;
    Node node;
    node.op = &op;
    node.form = &draft_.random.pick(op.forms);
    node.operands = {value};
    if (!op.literals.empty()) set_literals(node, draft_.random.pick(op.literals));
    draw_surface(node);
    const bool fits = op.is_pointwise ? add_side_operands(node) : draft_.bind_nest(node);
    return fits && draft_.complete(node, Sense::kNeeded);
  }

  static void set_literals(Node& node, const std::string& text) {
    const size_t comma = text.find(',');
    node.c = text.substr(0, comma);
    if (comma != std::string::npos) node.d = text.substr(comma + 1);
  }

  void draw_surface(Node& node) {
    const bool is_full = options_.style == Style::kFull;
    const size_t spellings = node.op->torch.size();
    if (spellings > 1 && draft_.random.chance(is_full ? 0.6 : 0.25)) {
      node.spelling = draft_.random.below(static_cast<int>(spellings));
    }
    const bool may_be_layer = !node.op->layer.empty() && is_full && draft_.random.chance(0.35);
    if (may_be_layer || node.op->torch.empty()) node.layer = free_layer(node.op->layer_name);
  }

  std::string free_layer(const std::string& wanted) const {
    std::string name = wanted;
    const auto is_taken = [&] {
      return std::ranges::find(draft_.graph.nodes, name, &Node::layer) != draft_.graph.nodes.end();
    };
    for (int i = 2; is_taken(); ++i) name = fmt::format("{}{}", wanted, i);
    return name;
  }

  // Adds the other operands of a pointwise operator.
  bool add_side_operands(Node& node) {
    const Value first = draft_.graph.value(node.operands.front());
    node.axes["*"] = first.dims;
    for (size_t i = 1; i < node.form->operands.size(); ++i) {
      const int operand = side_operand(node.operands.front(), first.dims);
      if (operand < 0) return false;
      node.operands.push_back(operand);
    }
    return true;
  }

  int side_operand(int value, const std::vector<int>& dims) {
    enum class Side { kInput, kEarlier, kVector, kColumn };
    std::vector<Side> sides;
    std::vector<int> earlier;
    const bool is_float = !is_whole(draft_.graph.type);
    const bool may_broadcast =
        is_float && options_.families.contains("broadcast") && dims.size() > 1;
    for (size_t i = 0; i < draft_.graph.values.size(); ++i) {
      const Value& other = draft_.graph.values[i];
      const bool is_shaped = other.origin != Origin::kParameter && other.draw != Draw::kIndex &&
                             static_cast<int>(i) != value;
      const bool is_same = is_shaped && other.dims == dims;
      if (is_same || (is_shaped && may_broadcast && is_reduced(other.dims, dims))) {
        earlier.push_back(static_cast<int>(i));
      }
    }
    if (!broadcasts_) {
      if (draft_.can_add_input() && draft_.graph.inputs().size() < 3) sides.push_back(Side::kInput);
      if (!earlier.empty()) sides.push_back(Side::kEarlier), sides.push_back(Side::kEarlier);
    }
    const bool is_plain =
        !dims.empty() && dims.back() != kOne && draft_.graph.dim(dims.back()).is_constant();
    if (may_broadcast && is_plain) sides.push_back(Side::kVector);
    if (may_broadcast && draft_.can_add_input()) sides.push_back(Side::kColumn);
    if (sides.empty()) return -1;
    std::vector<int> column = dims;
    switch (draft_.random.pick(sides)) {
      case Side::kInput:
        return draft_.add_input(dims, Draw::kNormal);
      case Side::kEarlier:
        return draft_.random.pick(earlier);
      case Side::kVector:
        return draft_.add_parameter("e", {dims.back()}, "", "");
      case Side::kColumn:
        column.back() = kOne;
        return draft_.add_input(column, Draw::kNormal);
    }
    return -1;
  }

  // True if `dims` equals `full` with some axes replaced by length 1.
  static bool is_reduced(const std::vector<int>& dims, const std::vector<int>& full) {
    if (dims.size() != full.size() || dims == full) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != full[i] && dims[i] != kOne) return false;
    }
    return true;
  }

  // ---- The end

  // Makes all unused values results; too many results make the task invalid.
  bool finish() {
    for (const Node& node : draft_.graph.nodes) {
      if (draft_.graph.num_uses(node.output) == 0) draft_.graph.outputs.push_back(node.output);
    }
    if (draft_.graph.outputs.size() > static_cast<size_t>(kResultsMax)) return false;
    for (const int input : draft_.graph.inputs()) {
      if (draft_.graph.num_uses(input) == 0) return false;
    }
    if (is_backward_ && !add_gradients(operators_, draft_)) return false;
    return std::ranges::none_of(draft_.graph.outputs, [&](int output) {
      return spread_of(draft_.array(output).values).deviation < 0.02 &&
             draft_.array(output).values.size() > 1;
    });
  }

  // Constant after construction.
  const std::vector<Operator>& operators_;
  const GraphOptions& options_;
  std::vector<const Operator*> allowed_;

  Draft draft_;
  bool is_backward_ = false;  // True if the task's output is a gradient.
  bool broadcasts_ = false;   // True if the current operator must broadcast.
};

}  // namespace

std::optional<TaskGraph> sample_graph(const std::vector<Operator>& operators, uint64_t seed,
                                      uint64_t number, const GraphOptions& options) {
  return GraphSampler(operators, seed, number, options).run();
}

}  // namespace mc::forge
