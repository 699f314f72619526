// SPDX-License-Identifier: Apache-2.0
#include "forge/draft.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

constexpr double kMagnitudeMax = 1e4;
// The limit is low, because intermediate results must not overflow either.
constexpr double kHalfMagnitudeMax = 500;
// The maximum is small, because all elements of a value are computed several times on a CPU.
constexpr int64_t kElementsMax = 16'000;
constexpr int64_t kStepsMax = 260'000;  // The maximum number of steps in a node's loops.

// The interval of the array's values, with a margin.
Interval widened(const Array& array) {
  const auto [low, high] = std::ranges::minmax(array.values);
  const double room = 0.6 * (high - low) + 0.5;
  return {low - room, high + room};
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  MC_CHECK(!values.empty());
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

std::string without_digits(std::string name) {
  while (name.size() > 1 && std::isdigit(static_cast<unsigned char>(name.back())) != 0) {
    name.pop_back();
  }
  return name;
}

Draft::Draft(uint64_t seed, uint64_t number)
    : random(seed, "graph", number), probe_random_(seed, "draw", number) {
  graph.seed = seed;
  graph.number = number;
}

void Draft::clear() {
  graph.dims.clear(), graph.values.clear(), graph.nodes.clear(), graph.outputs.clear();
  graph.gradient.reset();
  graph.type = Type::kFloat32;
  arrays_.clear(), intervals_.clear();
}

void Draft::restore(const Mark& mark) {
  MC_CHECK(mark.dims <= graph.dims.size() && mark.values <= graph.values.size());
  graph.dims.resize(mark.dims);
  graph.values.resize(mark.values);
  arrays_.resize(mark.values);
  intervals_.resize(mark.values);
}

int Draft::draw_size(int low, int high) {
  static constexpr int kPowers[] = {4, 8, 16, 32, 64, 128};
  static constexpr int kNice[] = {6, 12, 24, 48, 96, 40, 80, 20};
  static constexpr int kAwkward[] = {5, 7, 9, 11, 13, 17, 23, 37, 53, 61, 97, 45, 77};
  for (;;) {
    const double kind = random.unit();
    const int size = kind < 0.4   ? random.pick(kPowers)
                     : kind < 0.7 ? random.pick(kNice)
                                  : random.pick(kAwkward);
    if (size >= low && size <= high) return size;
  }
}

int Draft::add_dim(const std::string& wanted, int low, int high) {
  static constexpr int kProbes[] = {3, 5, 4, 7, 6};
  // F is the name of PyTorch's functional module.
  const std::string base = wanted == "F" ? "G" : wanted;
  std::string name = base;
  for (int i = 2; has_dim(name); ++i) name = fmt::format("{}{}", base, i);
  const bool is_spatial = wanted == "H" || wanted == "W" || wanted == "L" || wanted == "D";
  int probe = kProbes[graph.dims.size() % 5];
  int size = draw_size(low, high);
  if (is_spatial) probe = 6 + static_cast<int>(graph.dims.size() % 3);
  // Numbers of channels are even, because convolutions and norms may use two groups.
  if (wanted == "C" || wanted == "F") size += size % 2, probe = 4;
  if (wanted == "F") probe = 6;
  graph.dims.push_back({.name = name, .extent = "", .size = size, .probe = probe});
  return static_cast<int>(graph.dims.size()) - 1;
}

bool Draft::has_dim(const std::string& name) const {
  return std::ranges::find(graph.dims, name, &Dim::name) != graph.dims.end();
}

void Draft::make_even(const Operator& op, const std::vector<int>& dims) {
  const auto& pattern = op.forms.front().operands.front().axes;
  for (size_t i = 0; i < pattern.size() && pattern.size() == dims.size(); ++i) {
    if (std::ranges::find(op.even, pattern[i].name) == op.even.end()) continue;
    Dim& dim = graph.dims.at(static_cast<size_t>(dims[i]));
    dim.size += dim.size % 2, dim.probe += dim.probe % 2;
  }
}

int Draft::add_value(Value value, Array array, Interval interval) {
  graph.values.push_back(std::move(value));
  arrays_.push_back(std::move(array));
  intervals_.push_back(interval);
  MC_CHECK(arrays_.size() == graph.values.size() && intervals_.size() == graph.values.size());
  return static_cast<int>(graph.values.size()) - 1;
}

int Draft::add_given(Value value) {
  value.type = value.draw == Draw::kIndex ? Type::kInt64 : graph.type;
  Array array = drawn_array(graph, value, probe_random_);
  const Interval interval = value.draw == Draw::kPositive ? Interval{0.5, 1.5} : Interval{-6, 6};
  return add_value(std::move(value), std::move(array), interval);
}

int Draft::add_input(std::vector<int> dims, Draw draw, int below) {
  if (is_whole(graph.type) && draw != Draw::kIndex) draw = Draw::kWhole;
  static constexpr const char* kNames[] = {"x", "y", "z", "x2", "y2", "z2"};
  Value value{Origin::kInput, kNames[graph.inputs().size()], "", std::move(dims), draw, below, "",
              graph.type};
  return add_given(std::move(value));
}

std::string Draft::free_name(const std::string& wanted) const {
  std::string name = wanted;
  const auto is_taken = [&] {
    return std::ranges::find(graph.values, name, &Value::name) != graph.values.end();
  };
  for (int i = 2; is_taken(); ++i) name = fmt::format("{}{}", wanted, i);
  return name;
}

int Draft::add_parameter(const std::string& name, std::vector<int> dims, const std::string& layer,
                         const std::string& init) {
  Value value{Origin::kParameter, free_name(name), "",   std::move(dims),
              Draw::kNormal,      Value::kNoDim,   init, graph.type};
  if (init == "positive") value.draw = Draw::kPositive, value.init.clear();
  value.attribute = layer.empty() ? value.name : layer + "." + name;
  return add_given(std::move(value));
}

// Assigns dims to each axis of the form, and creates the operands.
bool Draft::bind_nest(Node& node) {
  const auto& operands = node.form->operands;
  if (!match(node, operands.front().axes, graph.value(node.operands.front()).dims)) return false;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (!bind_axes(node, operands[i].axes)) return false;
    const int operand = operand_of(node, operands[i]);
    if (operand < 0) return false;
    node.operands.push_back(operand);
  }
  return bind_axes(node, node.form->inner) && bind_axes(node, node.form->out) && is_even(node);
}

bool Draft::is_even(const Node& node) const {
  return std::ranges::all_of(node.op->even, [&](const std::string& axis) {
    const int dim = node.axes.at(axis).front();
    return graph.size_of(dim) % 2 == 0 && graph.probe_of(dim) % 2 == 0;
  });
}

bool Draft::match(Node& node, const std::vector<Axis>& pattern, const std::vector<int>& dims) {
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

bool Draft::bind_axes(Node& node, const std::vector<Axis>& pattern) {
  for (const Axis& axis : pattern) {
    if (node.axes.contains(axis.name)) continue;
    const int dim = axis.extent ? derived_dim(node, axis) : new_dim(axis.name);
    if (dim == Value::kNoDim) return false;
    node.axes[axis.name] = {dim};
  }
  return true;
}

int Draft::new_dim(const std::string& axis) {
  const std::string wanted = upper(without_digits(axis));
  const bool is_big = wanted == "M" || wanted == "V" || wanted == "K";
  return add_dim(wanted, 4, is_big ? 48 : 8);
}

int Draft::derived_dim(const Node& node, const Axis& axis) {
  const Expr& extent = *axis.extent;
  const auto dim_of = [&](const std::string& name) { return node.axes.at(lower(name)).front(); };
  if (extent.kind == Expr::Kind::kName) return dim_of(extent.text);
  const auto value = [&](bool is_probe) {
    return static_cast<int>(evaluate_with(extent, [&](const std::string& name) {
      return is_probe ? graph.probe_of(dim_of(name)) : graph.size_of(dim_of(name));
    }));
  };
  const std::string text = cuda_text(
      extent, {[&](const std::string& name) { return graph.extent_text(dim_of(name)); }, {}});
  if (text == "1") return kOne;
  if (value(true) < 2 || value(false) < 2) return Value::kNoDim;
  for (size_t i = 0; i < graph.dims.size(); ++i) {
    if (graph.dims[i].extent == text) return static_cast<int>(i);
  }
  std::string name = without_digits(axis.name);
  name = upper(name.substr(0, 1) == "o" && name.size() > 1 ? name.substr(1) : name);
  std::string free = name + "o";
  for (int i = 2; has_dim(free); ++i) free = fmt::format("{}o{}", name, i);
  graph.dims.push_back({.name = free, .extent = text, .size = value(false), .probe = value(true)});
  return static_cast<int>(graph.dims.size()) - 1;
}

int Draft::operand_of(Node& node, const Operand& operand) {
  const std::vector<int> dims = node.dims_of(operand.axes);
  switch (operand.kind) {
    case OperandKind::kParameter: {
      const bool is_fixed = std::ranges::all_of(dims, [&](int dim) {
        return dim == kOne ||
               (graph.dim(dim).is_constant() || graph.extent_text(dim) == graph.dim(dim).extent ||
                !node.layer.empty());
      });
      return is_fixed ? add_parameter(operand.name, dims, node.layer, operand.init) : -1;
    }
    case OperandKind::kIndex: {
      if (!bind_axes(node, {{operand.below, std::nullopt}})) return -1;
      const int below = operand.below.empty() ? Value::kNoDim : node.axes.at(operand.below).front();
      return can_add_input() ? add_input(dims, Draw::kIndex, below) : -1;
    }
    case OperandKind::kInput:
    case OperandKind::kValue:
      break;
  }
  std::vector<int> earlier;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& other = graph.values[i];
    const bool is_other = static_cast<int>(i) != node.operands.front();
    if (is_other && other.origin == Origin::kNode && other.dims == dims) {
      earlier.push_back(static_cast<int>(i));
    }
  }
  if (operand.kind == OperandKind::kValue && !earlier.empty() && random.chance(0.6)) {
    return random.pick(earlier);
  }
  const Draw draw = operand.init == "positive" ? Draw::kPositive : Draw::kNormal;
  return can_add_input() ? add_input(dims, draw) : -1;
}

int64_t Draft::steps_of(const Node& node) const {
  int64_t steps = graph.count_of(node.dims_of(node.form->out));
  if (!node.keeps_inner()) steps *= graph.count_of(node.dims_of(node.form->inner));
  return steps;
}

bool Draft::complete(Node& node, Sense sense) {
  std::vector<int> shape = node.dims_of(node.form->out);
  if (graph.count_of(shape) > kElementsMax || steps_of(node) > kStepsMax) return false;
  Value value{Origin::kNode, "", "",        std::move(shape), Draw::kNormal,
              Value::kNoDim, "", graph.type};
  graph.values.push_back(value);
  node.output = static_cast<int>(graph.values.size()) - 1;
  Array array = interpret_node(graph, node, arrays_);
  graph.values.pop_back();
  const Spread spread = spread_of(array.values);
  if (spread.magnitude > kMagnitudeMax) return false;
  if (graph.type == Type::kFloat16 && spread.magnitude > kHalfMagnitudeMax) return false;
  if (sense == Sense::kNeeded && !is_sensible(node, array)) return false;
  const Interval interval = sense == Sense::kNeeded ? interval_of(node, array) : widened(array);
  if (!std::isfinite(interval.low) || !std::isfinite(interval.high) ||
      std::max(std::abs(interval.low), std::abs(interval.high)) > kMagnitudeMax * 10) {
    return false;
  }
  add_value(std::move(value), std::move(array), interval);
  graph.nodes.push_back(std::move(node));
  return true;
}

bool Draft::is_sensible(const Node& node, const Array& after) const {
  const Spread spread = spread_of(after.values);
  const size_t count = after.values.size();
  if (spread.magnitude > kMagnitudeMax) return false;
  if (count < 2) return spread.magnitude > 1e-3;
  const double least = node.op->is_pointwise ? 0.08 : 0.02;
  if (spread.deviation < least) return false;
  const int distinct = static_cast<int>(count) / 6;
  if (spread.distinct < std::clamp(distinct, 2, node.op->is_pointwise ? 1 << 20 : 8)) return false;
  const Array& before = arrays_.at(static_cast<size_t>(node.operands.front()));
  if (before.values.size() != count || !node.op->is_pointwise) return true;
  int changed = 0;
  for (size_t i = 0; i < count; ++i) {
    changed += std::abs(after.values[i] - before.values[i]) > 1e-3 ? 1 : 0;
  }
  return changed * 5 >= static_cast<int>(count);
}

// The bounds of all values for all inputs: for a pointwise operator, computed on a grid over its
// operands' intervals; else the probe's bounds with a margin.
Interval Draft::interval_of(const Node& node, const Array& array) const {
  Interval found;
  if (node.op->is_pointwise) {
    found = grid_interval(node);
  } else {
    found = widened(array);
  }
  return {std::max(found.low, node.op->range_low), std::min(found.high, node.op->range_high)};
}

Interval Draft::grid_interval(const Node& node) const {
  const size_t operands = node.operands.size();
  const int points = operands == 1 ? 65 : operands == 2 ? 17 : 7;
  std::vector<double> values(node.form->names.size(), 0.0);
  values[7] = node.c.empty() ? 0 : std::stod(node.c);
  values[8] = node.d.empty() ? 0 : std::stod(node.d);
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

}  // namespace mc::forge
