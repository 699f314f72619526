// SPDX-License-Identifier: Apache-2.0
//
// A graph grows forward.  Its focus is a family: one operator of it is always there.  The value
// that flows is mostly the newest one; now and then a node takes an older one, which makes a
// branch, and a binary operator joins two.  What no node uses at the end is a result.
#include "forge/draw.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "forge/interpret.h"
#include "forge/random.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

constexpr int kDrawsMax = 24;   // Tries of one operator.
constexpr int kGraphsMax = 24;  // Tries of one task.
constexpr int kInputsMax = 6;
constexpr int kResultsMax = 3;
constexpr double kMagnitudeMax = 1e4;
constexpr int64_t kElementsMax = 16'000;  // The emulator runs all of a value several times.
constexpr int64_t kStepsMax = 260'000;    // The bound on a node's loops.

struct Interval {
  double low = -6, high = 6;
};

struct Spread {
  double deviation = 0;
  double magnitude = 0;
  int distinct = 0;
};

Spread spread_of(std::vector<double> values) {
  Spread spread;
  double mean = 0;
  const auto count = static_cast<double>(values.size());
  for (const double v : values) {
    mean += v / count;
    spread.magnitude = std::isfinite(v) ? std::max(spread.magnitude, std::abs(v)) : 1e300;
  }
  for (const double v : values) spread.deviation += (v - mean) * (v - mean) / count;
  spread.deviation = std::sqrt(spread.deviation);
  std::ranges::sort(values);
  for (size_t i = 0; i < values.size(); ++i) {
    spread.distinct += i == 0 || values[i] - values[i - 1] > 1e-6 ? 1 : 0;
  }
  return spread;
}

class Drawing {
 public:
  Drawing(const std::vector<Operator>& operators, uint64_t seed, uint64_t number,
          const DrawOptions& options)
      : operators_(operators),
        options_(options),
        random_(seed, "graph", number),
        probe_random_(seed, "draw", number) {
    graph_.seed = seed;
    graph_.number = number;
    for (const Operator& op : operators_) {
      if (allows(op)) allowed_.push_back(&op);
    }
  }

  std::optional<TaskGraph> run() {
    for (int i = 0; i < kGraphsMax; ++i) {
      if (try_once()) return std::move(graph_);
    }
    return std::nullopt;
  }

 private:
  bool try_once() {
    graph_.dims.clear(), graph_.values.clear(), graph_.nodes.clear(), graph_.outputs.clear();
    arrays_.clear(), intervals_.clear();
    const std::vector<std::string> families(options_.families.begin(), options_.families.end());
    const std::string family = random_.pick(families);
    const int depth = 1 + random_.below(options_.depth);
    const int place = random_.below(depth);
    // Any binary operator broadcasts; the family's own operators are half of its tasks.
    const bool broadcasts =
        family == "broadcast" && (options_.operators.empty() && random_.chance(0.5));
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
        const Operator* next = find(random_.pick(focus->then[k]));
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

  const Operator* pick_from(const std::string& family) {
    std::vector<const Operator*> choices;
    for (const Operator* op : allowed_) {
      if (op->family == family) choices.push_back(op);
    }
    return choices.empty() ? nullptr : random_.pick(choices);
  }

  // ---- Sizes

  int draw_size(int low, int high) {
    static constexpr int kPowers[] = {4, 8, 16, 32, 64, 128};
    static constexpr int kNice[] = {6, 12, 24, 48, 96, 40, 80, 20};
    static constexpr int kAwkward[] = {5, 7, 9, 11, 13, 17, 23, 37, 53, 61, 97, 45, 77};
    for (;;) {
      const double kind = random_.unit();
      const int size = kind < 0.4   ? random_.pick(kPowers)
                       : kind < 0.7 ? random_.pick(kNice)
                                    : random_.pick(kAwkward);
      if (size >= low && size <= high) return size;
    }
  }

  int add_dim(const std::string& wanted, int low, int high) {
    static constexpr int kProbes[] = {3, 5, 4, 7, 6};
    const std::string base = wanted == "F" ? "G" : wanted;  // F is PyTorch's functional module.
    std::string name = base;
    for (int i = 2; has_dim(name); ++i) name = fmt::format("{}{}", base, i);
    const bool is_spatial = wanted == "H" || wanted == "W" || wanted == "L" || wanted == "D";
    int probe = kProbes[graph_.dims.size() % 5];
    int size = draw_size(low, high);
    if (is_spatial) probe = 6 + static_cast<int>(graph_.dims.size() % 3);
    // Channels come in groups of two, in convolutions and norms.
    if (wanted == "C" || wanted == "F") size += size % 2, probe = 4;
    if (wanted == "F") probe = 6;
    graph_.dims.push_back({name, "", size, probe});
    return static_cast<int>(graph_.dims.size()) - 1;
  }

  bool has_dim(const std::string& name) const {
    return std::ranges::find(graph_.dims, name, &Dim::name) != graph_.dims.end();
  }

  // Draws the first input: of the focus's shape, so that it can be met.
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
      const bool is_deep = options_.style == Style::kFull && random_.chance(0.4);
      size_t rank = std::max<size_t>(fixed + 1, is_deep ? 3 : 2);
      if (rank > 2) dims.push_back(add_dim("B", 2, 6));
      if (rank > 3) dims.push_back(add_dim("C", 4, 8));
      const bool is_wide = fixed < 2;
      dims.push_back(add_dim("N", 16, rank == 2 ? 64 : 24));
      dims.push_back(add_dim("M", is_wide ? 24 : 16, is_wide ? 128 : 48));
    } else {
      const size_t spatial = num_spatial(names);
      for (const std::string& name : names) {
        std::string wanted = without_digits(name);
        for (char& c : wanted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        const bool is_space = wanted == "H" || wanted == "W" || wanted == "D" || wanted == "L";
        if (wanted == "N") {
          dims.push_back(add_dim("N", spatial > 0 ? 4 : 16, spatial > 0 ? 6 : 64));
        } else if (wanted == "B") {
          dims.push_back(add_dim("B", 4, 6));
        } else if (is_space) {
          const int high = spatial == 1 ? 64 : spatial == 2 ? 17 : 9;
          dims.push_back(add_dim(wanted, spatial == 1 ? 16 : spatial == 2 ? 8 : 6, high));
        } else {
          dims.push_back(add_dim(wanted, 4, spatial > 0 ? 8 : 48));
        }
      }
    }
    if (focus != nullptr) make_even(*focus, dims);
    const bool needs_positive = focus == nullptr && random_.chance(0.15);
    add_input(dims, needs_positive ? Draw::kPositive : Draw::kNormal);
    return true;
  }

  void make_even(const Operator& op, const std::vector<int>& dims) {
    const auto& pattern = op.forms.front().operands.front().axes;
    for (size_t i = 0; i < pattern.size() && pattern.size() == dims.size(); ++i) {
      if (std::ranges::find(op.even, pattern[i].name) == op.even.end()) continue;
      Dim& dim = graph_.dims.at(static_cast<size_t>(dims[i]));
      dim.size += dim.size % 2, dim.probe += dim.probe % 2;
    }
  }

  static size_t num_spatial(const std::vector<std::string>& names) {
    return static_cast<size_t>(std::ranges::count_if(names, [](const std::string& axis) {
      const std::string name = without_digits(axis);
      return name == "h" || name == "w" || name == "d" || name == "l";
    }));
  }

  // ---- Values

  int add_value(Value value, Array array, Interval interval) {
    graph_.values.push_back(std::move(value));
    arrays_.push_back(std::move(array));
    intervals_.push_back(interval);
    return static_cast<int>(graph_.values.size()) - 1;
  }

  int add_given(Value value) {
    Array array = drawn_array(graph_, value, probe_random_);
    const Interval interval = value.draw == Draw::kPositive ? Interval{0.5, 1.5} : Interval{-6, 6};
    return add_value(std::move(value), std::move(array), interval);
  }

  int add_input(std::vector<int> dims, Draw draw, int below = Value::kNoDim) {
    static constexpr const char* kNames[] = {"x", "y", "z", "x2", "y2", "z2"};
    Value value{
        Origin::kInput, kNames[graph_.inputs().size()], "", std::move(dims), draw, below, ""};
    return add_given(std::move(value));
  }

  std::string free_name(const std::string& wanted) const {
    std::string name = wanted;
    const auto is_taken = [&] {
      return std::ranges::find(graph_.values, name, &Value::name) != graph_.values.end();
    };
    for (int i = 2; is_taken(); ++i) name = fmt::format("{}{}", wanted, i);
    return name;
  }

  bool can_add_input() const { return graph_.inputs().size() < static_cast<size_t>(kInputsMax); }

  // The newest value, or now and then an older one.
  int pick_value() {
    const int last = static_cast<int>(graph_.values.size()) - 1;
    std::vector<int> older;
    for (int i = 0; i <= last; ++i) {
      const Value& value = graph_.values[static_cast<size_t>(i)];
      const bool flows = value.origin == Origin::kNode ||
                         (value.origin == Origin::kInput && value.draw != Draw::kIndex);
      if (flows && !value.dims.empty()) older.push_back(i);
    }
    if (older.empty()) return -1;
    const bool is_single = graph_.nodes.size() < 2 || options_.depth < 3;
    if (is_single || random_.chance(0.85)) return newest();
    return random_.pick(older);
  }

  int newest() const { return graph_.nodes.empty() ? 0 : graph_.nodes.back().output; }

  // ---- Nodes

  bool add_focus(const Operator& op) {
    for (int i = 0; i < kDrawsMax; ++i) {
      if (try_operator(op, newest())) return true;
    }
    return false;
  }

  bool add_some(const std::string& focus) {
    for (int i = 0; i < kDrawsMax * 3 && !allowed_.empty(); ++i) {
      const Operator& op = *random_.pick(allowed_);
      const bool is_heavy = !op.is_pointwise;
      if (is_heavy && (!focus.empty() || !options_.families.contains(op.family))) continue;
      if (is_heavy &&
          (op.is_rare || num_heavy() >= 1 + options_.depth / 4 || random_.chance(0.8))) {
        continue;
      }
      broadcasts_ = focus == "broadcast";
      if (broadcasts_ && op.num_operands() < 2) continue;
      const Node* before = graph_.nodes.empty() ? nullptr : &graph_.nodes.back();
      if (before != nullptr && before->op == &op && op.num_operands() < 2) continue;
      const int value = pick_value();
      if (value >= 0 && try_operator(op, value)) return true;
    }
    return false;
  }

  int num_heavy() const {
    return static_cast<int>(std::ranges::count_if(
        graph_.nodes, [](const Node& node) { return !node.op->is_pointwise; }));
  }

  // Puts the graph back where the operator does not fit.
  bool try_operator(const Operator& op, int value) {
    const size_t dims = graph_.dims.size(), values = graph_.values.size();
    if (add_operator(op, value)) return true;
    graph_.dims.resize(dims);
    graph_.values.resize(values);
    arrays_.resize(values);
    intervals_.resize(values);
    return false;
  }

  bool add_operator(const Operator& op, int value) {
    const Interval interval = intervals_.at(static_cast<size_t>(value));
    if (interval.low < op.low || interval.high > op.high) return false;
    Node node;
    node.op = &op;
    node.form = &random_.pick(op.forms);
    node.operands = {value};
    if (!op.literals.empty()) set_literals(node, random_.pick(op.literals));
    draw_surface(node);
    const bool fits = op.is_pointwise ? add_side_operands(node) : bind_nest(node);
    return fits && complete(node);
  }

  static void set_literals(Node& node, const std::string& text) {
    const size_t comma = text.find(',');
    node.c = text.substr(0, comma);
    if (comma != std::string::npos) node.d = text.substr(comma + 1);
  }

  void draw_surface(Node& node) {
    const bool is_full = options_.style == Style::kFull;
    const size_t spellings = node.op->torch.size();
    if (spellings > 1 && random_.chance(is_full ? 0.6 : 0.25)) {
      node.spelling = random_.below(static_cast<int>(spellings));
    }
    const bool may_be_layer = !node.op->layer.empty() && is_full && random_.chance(0.35);
    if (may_be_layer || node.op->torch.empty()) node.layer = free_layer(node.op->layer_name);
  }

  std::string free_layer(const std::string& wanted) const {
    std::string name = wanted;
    const auto is_taken = [&] {
      return std::ranges::find(graph_.nodes, name, &Node::layer) != graph_.nodes.end();
    };
    for (int i = 2; is_taken(); ++i) name = fmt::format("{}{}", wanted, i);
    return name;
  }

  // The other operands of a pointwise operator.
  bool add_side_operands(Node& node) {
    const Value first = graph_.value(node.operands.front());
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
    const bool may_broadcast = options_.families.contains("broadcast") && dims.size() > 1;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& other = graph_.values[i];
      const bool is_shaped = other.origin != Origin::kParameter && other.draw != Draw::kIndex &&
                             static_cast<int>(i) != value;
      const bool is_same = is_shaped && other.dims == dims;
      if (is_same || (is_shaped && may_broadcast && is_reduced(other.dims, dims))) {
        earlier.push_back(static_cast<int>(i));
      }
    }
    if (!broadcasts_) {
      if (can_add_input() && graph_.inputs().size() < 3) sides.push_back(Side::kInput);
      if (!earlier.empty()) sides.push_back(Side::kEarlier), sides.push_back(Side::kEarlier);
    }
    const bool is_plain =
        !dims.empty() && dims.back() != kOne && graph_.dim(dims.back()).is_constant();
    if (may_broadcast && is_plain) sides.push_back(Side::kVector);
    if (may_broadcast && can_add_input()) sides.push_back(Side::kColumn);
    if (sides.empty()) return -1;
    std::vector<int> column = dims;
    switch (random_.pick(sides)) {
      case Side::kInput:
        return add_input(dims, Draw::kNormal);
      case Side::kEarlier:
        return random_.pick(earlier);
      case Side::kVector:
        return add_parameter("e", {dims.back()}, "", "");
      case Side::kColumn:
        column.back() = kOne;
        return add_input(column, Draw::kNormal);
    }
    return -1;
  }

  // True where `dims` are those of `full` with some axes of length 1.
  static bool is_reduced(const std::vector<int>& dims, const std::vector<int>& full) {
    if (dims.size() != full.size() || dims == full) return false;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] != full[i] && dims[i] != kOne) return false;
    }
    return true;
  }

  int add_parameter(const std::string& name, std::vector<int> dims, const std::string& layer,
                    const std::string& init) {
    Value value{Origin::kParameter, free_name(name), "",  std::move(dims),
                Draw::kNormal,      Value::kNoDim,   init};
    if (init == "positive") value.draw = Draw::kPositive, value.init.clear();
    value.attribute = layer.empty() ? value.name : layer + "." + name;
    return add_given(std::move(value));
  }

  // ---- Nests

  // Gives each axis of the form its dims, and makes the operands.
  bool bind_nest(Node& node) {
    const auto& operands = node.form->operands;
    if (!match(node, operands.front().axes, graph_.value(node.operands.front()).dims)) return false;
    for (size_t i = 1; i < operands.size(); ++i) {
      if (!bind_axes(node, operands[i].axes)) return false;
      const int operand = operand_of(node, operands[i]);
      if (operand < 0) return false;
      node.operands.push_back(operand);
    }
    return bind_axes(node, node.form->inner) && bind_axes(node, node.form->out) && is_even(node);
  }

  bool is_even(const Node& node) const {
    return std::ranges::all_of(node.op->even, [&](const std::string& axis) {
      const int dim = node.axes.at(axis).front();
      return graph_.size_of(dim) % 2 == 0 && graph_.probe_of(dim) % 2 == 0;
    });
  }

  bool match(Node& node, const std::vector<Axis>& pattern, const std::vector<int>& dims) {
    const bool is_open = !pattern.empty() && pattern.front().name == "*";
    const size_t fixed = pattern.size() - (is_open ? 1 : 0);
    if (is_open ? dims.size() <= fixed : dims.size() != fixed) return false;
    const size_t leading = dims.size() - fixed;
    if (is_open) node.axes["*"] = {dims.begin(), dims.begin() + static_cast<ptrdiff_t>(leading)};
    for (size_t i = 0; i < fixed; ++i) {
      const int dim = dims[leading + i];
      if (dim == kOne) return false;
      node.axes[pattern[pattern.size() - fixed + i].name] = {dim};
    }
    return true;
  }

  bool bind_axes(Node& node, const std::vector<Axis>& pattern) {
    for (const Axis& axis : pattern) {
      if (node.axes.contains(axis.name)) continue;
      const int dim = axis.extent ? derived_dim(node, axis) : new_dim(axis.name);
      if (dim == Value::kNoDim) return false;
      node.axes[axis.name] = {dim};
    }
    return true;
  }

  int new_dim(const std::string& axis) {
    std::string wanted = without_digits(axis);
    for (char& c : wanted) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const bool is_big = wanted == "M" || wanted == "V" || wanted == "K";
    return add_dim(wanted, 4, is_big ? 48 : 8);
  }

  int derived_dim(const Node& node, const Axis& axis) {
    const Expr& extent = *axis.extent;
    const auto dim_of = [&](const std::string& name) { return node.axes.at(lower(name)).front(); };
    if (extent.kind == Expr::Kind::kName) return dim_of(extent.text);
    const auto value = [&](bool is_probe) {
      return static_cast<int>(evaluate_with(extent, [&](const std::string& name) {
        return is_probe ? graph_.probe_of(dim_of(name)) : graph_.size_of(dim_of(name));
      }));
    };
    const std::string text = cuda_text(
        extent, {[&](const std::string& name) { return graph_.extent_text(dim_of(name)); }, {}});
    if (text == "1") return kOne;
    if (value(true) < 2 || value(false) < 2) return Value::kNoDim;
    for (size_t i = 0; i < graph_.dims.size(); ++i) {
      if (graph_.dims[i].extent == text) return static_cast<int>(i);
    }
    std::string name = without_digits(axis.name);
    name = name.substr(0, 1) == "o" && name.size() > 1 ? name.substr(1) : name;
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    std::string free = name + "o";
    for (int i = 2; has_dim(free); ++i) free = fmt::format("{}o{}", name, i);
    graph_.dims.push_back({free, text, value(false), value(true)});
    return static_cast<int>(graph_.dims.size()) - 1;
  }

  static std::string without_digits(std::string name) {
    while (name.size() > 1 && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
      name.pop_back();
    }
    return name;
  }

  int operand_of(Node& node, const Operand& operand) {
    const std::vector<int> dims = node.dims_of(operand.axes);
    switch (operand.kind) {
      case OperandKind::kParameter: {
        const bool is_fixed = std::ranges::all_of(dims, [&](int dim) {
          return dim == kOne ||
                 (graph_.dim(dim).is_constant() ||
                  graph_.extent_text(dim) == graph_.dim(dim).extent || !node.layer.empty());
        });
        return is_fixed ? add_parameter(operand.name, dims, node.layer, operand.init) : -1;
      }
      case OperandKind::kIndex: {
        if (!bind_axes(node, {{operand.below, std::nullopt}})) return -1;
        const int below =
            operand.below.empty() ? Value::kNoDim : node.axes.at(operand.below).front();
        return can_add_input() ? add_input(dims, Draw::kIndex, below) : -1;
      }
      case OperandKind::kInput:
      case OperandKind::kValue:
        break;
    }
    std::vector<int> earlier;
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const Value& other = graph_.values[i];
      const bool is_other = static_cast<int>(i) != node.operands.front();
      if (is_other && other.origin == Origin::kNode && other.dims == dims) {
        earlier.push_back(static_cast<int>(i));
      }
    }
    if (operand.kind == OperandKind::kValue && !earlier.empty() && random_.chance(0.6)) {
      return random_.pick(earlier);
    }
    const Draw draw = operand.init == "positive" ? Draw::kPositive : Draw::kNormal;
    return can_add_input() ? add_input(dims, draw) : -1;
  }

  int64_t steps_of(const Node& node) const {
    int64_t steps = graph_.count_of(node.dims_of(node.form->out));
    if (!node.keeps_inner()) steps *= graph_.count_of(node.dims_of(node.form->inner));
    return steps;
  }

  // ---- Values of a node

  bool complete(Node& node) {
    std::vector<int> shape = node.dims_of(node.form->out);
    if (graph_.count_of(shape) > kElementsMax || steps_of(node) > kStepsMax) return false;
    Value value{Origin::kNode, "", "", std::move(shape), Draw::kNormal, Value::kNoDim, ""};
    graph_.values.push_back(value);
    node.output = static_cast<int>(graph_.values.size()) - 1;
    Array array = interpret_node(graph_, node, arrays_);
    graph_.values.pop_back();
    if (!is_sensible(node, array)) return false;
    const Interval interval = interval_of(node, array);
    if (!std::isfinite(interval.low) || !std::isfinite(interval.high) ||
        std::max(std::abs(interval.low), std::abs(interval.high)) > kMagnitudeMax * 10) {
      return false;
    }
    add_value(std::move(value), std::move(array), interval);
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  bool is_sensible(const Node& node, const Array& after) const {
    const Spread spread = spread_of(after.values);
    const size_t count = after.values.size();
    if (spread.magnitude > kMagnitudeMax) return false;
    if (count < 2) return spread.magnitude > 1e-3;
    const double least = node.op->is_pointwise ? 0.08 : 0.02;
    if (spread.deviation < least) return false;
    const int distinct = static_cast<int>(count) / 6;
    if (spread.distinct < std::clamp(distinct, 2, node.op->is_pointwise ? 1 << 20 : 8))
      return false;
    const Array& before = arrays_.at(static_cast<size_t>(node.operands.front()));
    if (before.values.size() != count || !node.op->is_pointwise) return true;
    int changed = 0;
    for (size_t i = 0; i < count; ++i) {
      changed += std::abs(after.values[i] - before.values[i]) > 1e-3 ? 1 : 0;
    }
    return changed * 5 >= static_cast<int>(count);
  }

  // Bounds of all values, whatever the inputs: of a pointwise operator over a grid of its operands'
  // intervals, else the probe's with room around it.
  Interval interval_of(const Node& node, const Array& array) const {
    Interval found;
    if (node.op->is_pointwise) {
      found = grid_interval(node);
    } else {
      const auto [low, high] = std::ranges::minmax(array.values);
      const double room = 0.6 * (high - low) + 0.5;
      found = {low - room, high + room};
    }
    return {std::max(found.low, node.op->range_low), std::min(found.high, node.op->range_high)};
  }

  Interval grid_interval(const Node& node) const {
    const size_t operands = node.operands.size();
    const int points = operands == 1 ? 65 : operands == 2 ? 17 : 7;
    std::vector<double> values(node.form->names.size(), 0.0);
    values[6] = node.c.empty() ? 0 : std::stod(node.c);
    values[7] = node.d.empty() ? 0 : std::stod(node.d);
    Interval found{1e300, -1e300};
    int total = 1;
    for (size_t i = 0; i < operands; ++i) total *= points;
    for (int at = 0; at < total; ++at) {
      int rest = at;
      for (size_t i = 0; i < operands; ++i) {
        const Interval& own = intervals_.at(static_cast<size_t>(node.operands[i]));
        values[i] = own.low + (own.high - own.low) * (rest % points) / (points - 1);
        rest /= points;
      }
      const double v = evaluate(node.form->result, values, {});
      found = {std::min(found.low, v), std::max(found.high, v)};
      if (!std::isfinite(v)) return {-INFINITY, INFINITY};
    }
    return found;
  }

  // ---- The end

  // Values that nothing uses are the results; too many of them make no task.
  bool finish() {
    for (const Node& node : graph_.nodes) {
      if (graph_.num_uses(node.output) == 0) graph_.outputs.push_back(node.output);
    }
    if (graph_.outputs.size() > static_cast<size_t>(kResultsMax)) return false;
    for (const int input : graph_.inputs()) {
      if (graph_.num_uses(input) == 0) return false;
    }
    return std::ranges::none_of(graph_.outputs, [&](int output) {
      return spread_of(arrays_.at(static_cast<size_t>(output)).values).deviation < 0.02 &&
             arrays_.at(static_cast<size_t>(output)).values.size() > 1;
    });
  }

  // Constant after construction.
  const std::vector<Operator>& operators_;
  const DrawOptions& options_;
  std::vector<const Operator*> allowed_;

  Random random_;
  Random probe_random_;
  TaskGraph graph_;
  std::vector<Array> arrays_;  // All values, at the sizes of Dim::probe.
  std::vector<Interval> intervals_;
  bool broadcasts_ = false;  // The operator at hand has to broadcast.
};

}  // namespace

std::optional<TaskGraph> draw_graph(const std::vector<Operator>& operators, uint64_t seed,
                                    uint64_t number, const DrawOptions& options) {
  return Drawing(operators, seed, number, options).run();
}

}  // namespace mc::forge
