// SPDX-License-Identifier: Apache-2.0
#include "forge/draw.h"

#include <algorithm>
#include <cmath>

#include "forge/random.h"

namespace mc::forge {
namespace {

constexpr int kDrawsMax = 24;   // Of one operator.
constexpr int kGraphsMax = 16;  // Of one task.
constexpr int kDepthMax = 4;
constexpr int kSamples = 33;

using Samples = std::vector<double>;

Samples grid(double scale) {
  Samples samples;
  for (int i = 0; i < kSamples; ++i) samples.push_back(scale * (i - kSamples / 2) * 0.23 + 0.01);
  return samples;
}

double spread(const Samples& samples) {
  double mean = 0, square = 0;
  for (const double v : samples) mean += v / kSamples;
  for (const double v : samples) square += (v - mean) * (v - mean) / kSamples;
  return std::sqrt(square);
}

bool is_in(Domain domain, const Samples& samples) {
  const auto [low, high] = std::ranges::minmax(samples);
  switch (domain) {
    case Domain::kAny:
      return true;
    case Domain::kNotNegative:
      return low >= 0;
    case Domain::kPositive:
      return low >= 0.1;
    case Domain::kModerate:
      return low >= -12 && high <= 12;
  }
  return false;
}

// Whether values may go on after an operator made `after` of `before`.
bool is_sensible(const Samples& before, const Samples& after) {
  if (!std::ranges::all_of(after, [](double v) { return std::abs(v) < 1e4; })) return false;
  if (spread(after) < 0.08) return false;
  int changed = 0, distinct = 0;
  Samples sorted = after;
  std::ranges::sort(sorted);
  for (int i = 0; i < kSamples; ++i) {
    const auto at = static_cast<size_t>(i);
    changed += std::abs(after[at] - before[at]) > 1e-3 ? 1 : 0;
    distinct += i == 0 || sorted[at] - sorted[at - 1] > 1e-6 ? 1 : 0;
  }
  return changed >= kSamples / 6 && distinct >= kSamples / 4;
}

class Drawing {
 public:
  Drawing(uint64_t seed, uint64_t number, const DrawOptions& options)
      : options_(options), random_(seed, "graph", number) {
    graph_.seed = seed;
    graph_.number = number;
  }

  std::optional<TaskGraph> run() {
    for (int i = 0; i < kGraphsMax; ++i) {
      if (try_once()) return std::move(graph_);
    }
    return std::nullopt;
  }

 private:
  bool try_once() {
    graph_.dims.clear();
    graph_.values.clear();
    graph_.nodes.clear();
    const int depth = draw_depth();
    const Family focus = draw_focus();
    draw_sizes(focus == Family::kMatmul);
    int left = depth;
    if (!draw_head(focus, left)) return false;
    if (focus == Family::kElementwise || focus == Family::kMatmul) return draw_chain(left);
    if (focus == Family::kBroadcast) return draw_broadcast(left);
    return draw_row(focus, left);
  }

  int draw_depth() { return 1 + random_.below(kDepthMax); }

  Family draw_focus() {
    const std::vector<Family> allowed(options_.families.begin(), options_.families.end());
    return random_.pick(allowed);
  }

  bool allows(std::string_view name) const {
    return options_.operators.empty() || options_.operators.contains(std::string(name));
  }

  // ---- Sizes and values
  // --------------------------------------------------------------------------

  int draw_size(int low, int high) {
    static constexpr int kPowers[] = {16, 32, 64, 128, 256};
    static constexpr int kNice[] = {24, 48, 96, 40, 80, 192};
    static constexpr int kAwkward[] = {17, 23, 37, 53, 61, 97, 131, 191, 45, 77};
    for (;;) {
      const double kind = random_.unit();
      const int size = kind < 0.4   ? random_.pick(kPowers)
                       : kind < 0.7 ? random_.pick(kNice)
                                    : random_.pick(kAwkward);
      if (size >= low && size <= high) return size;
    }
  }

  void draw_sizes(bool has_inner) {
    const bool is_full = options_.style == Style::kFull && !has_inner && random_.chance(0.4);
    if (is_full) graph_.dims.push_back({"B", 2 + random_.below(5), 2});
    graph_.dims.push_back({"N", is_full ? draw_size(16, 24) : draw_size(16, 64), 3});
    graph_.dims.push_back({"M", has_inner ? draw_size(16, 64) : draw_size(24, 192), 5});
    if (has_inner) graph_.dims.push_back({"K", draw_size(16, 64), 4});
    num_outer_ = static_cast<int>(graph_.dims.size()) - (has_inner ? 1 : 0);
  }

  std::vector<int> full_shape() const {
    std::vector<int> dims;
    for (int i = 0; i < num_outer_; ++i) dims.push_back(i);
    return dims;
  }
  std::vector<int> outer_shape() const {
    std::vector<int> dims = full_shape();
    dims.pop_back();
    return dims;
  }
  int last() const { return num_outer_ - 1; }

  int add_value(Origin origin, std::string name, std::vector<int> dims) {
    graph_.values.push_back({origin, std::move(name), std::move(dims)});
    return static_cast<int>(graph_.values.size()) - 1;
  }

  std::string next_input_name() const {
    static constexpr const char* kNames[] = {"x", "y", "z"};
    return kNames[graph_.inputs().size()];
  }

  void add_node(Node node, std::vector<int> shape) {
    node.output = add_value(Origin::kNode, "", std::move(shape));
    value_ = node.output;
    graph_.nodes.push_back(std::move(node));
  }

  // ---- Heads
  // -------------------------------------------------------------------------------------

  bool draw_head(Family focus, int& left) {
    samples_ = grid(1);
    is_row_done_ = false;
    shape_ = full_shape();
    const bool outer =
        focus == Family::kBroadcast && graph_.dims.size() == 2 && random_.chance(0.4);
    if (focus != Family::kMatmul && !outer) {
      value_ = add_value(Origin::kInput, "x", full_shape());
      head_value_ = value_;
      return true;
    }
    std::vector<const Head*> choices;
    for (const Head& head : heads()) {
      if (head.family == focus && allows(head.name)) choices.push_back(&head);
    }
    if (choices.empty()) return false;
    Node node;
    node.head = random_.pick(choices);
    focus == Family::kMatmul ? add_matmul(node) : add_outer(node);
    head_value_ = -1;
    --left;
    return true;
  }

  void add_outer(Node& node) {
    node.inputs = {add_value(Origin::kInput, "x", {0, kOne}), add_value(Origin::kInput, "y", {1})};
    add_node(node, full_shape());
  }

  void add_matmul(Node& node) {
    constexpr int kN = 0, kM = 1, kK = 2;
    const std::string_view name = node.head->name;
    node.inputs = {add_value(Origin::kInput, "x", {kN, kK})};
    if (name == "matmul") node.inputs.push_back(add_value(Origin::kInput, "y", {kK, kM}));
    if (name == "matmul_t") node.inputs.push_back(add_value(Origin::kInput, "y", {kM, kK}));
    node.is_layer = name.starts_with("linear");
    if (node.is_layer) node.inputs.push_back(add_value(Origin::kParameter, "fc.weight", {kM, kK}));
    if (name == "linear") node.inputs.push_back(add_value(Origin::kParameter, "fc.bias", {kM}));
    samples_ = grid(node.is_layer ? 0.6 : 6);
    add_node(node, full_shape());
  }

  // ---- Chains
  // ------------------------------------------------------------------------------------

  bool draw_chain(int count) {
    for (int i = 0; i < count; ++i) {
      if (!draw_pointwise(false)) return false;
    }
    return !graph_.nodes.empty();
  }

  bool draw_broadcast(int left) {
    if (graph_.head() != nullptr) return draw_chain(left);
    const int place = random_.below(left);
    for (int i = 0; i < left; ++i) {
      if (!draw_pointwise(i == place)) return false;
    }
    return true;
  }

  bool draw_row(Family focus, int left) {
    const int before = random_.chance(0.7) ? left - 1 : random_.below(left);
    if (before > 0 && !draw_chain(before)) return false;
    if (!add_row(focus)) return false;
    return left - before - 1 == 0 || draw_chain(left - before - 1);
  }

  bool draw_pointwise(bool broadcasts) {
    for (int i = 0; i < kDrawsMax; ++i) {
      const Pointwise& op = random_.pick(pointwise_operators());
      if (!allows(op.name) || (broadcasts && !op.is_binary)) continue;
      if (!graph_.nodes.empty() && graph_.nodes.back().pointwise == &op && !op.is_binary) continue;
      if (try_pointwise(op, broadcasts)) return true;
    }
    return false;
  }

  bool try_pointwise(const Pointwise& op, bool broadcasts) {
    Node node;
    node.pointwise = &op;
    if (op.is_binary) {
      const auto side = draw_side(broadcasts);
      if (!side) return false;
      node.side = *side;
      if (node.side == Side::kResidual && !is_residual_sensible(op)) return false;
    }
    if (!op.literals.empty()) set_literals(node, random_.pick(op.literals));
    if (!is_in(op.domain, samples_)) return false;
    Samples after = samples_;
    for (int i = 0; i < kSamples; ++i) {
      const auto at = static_cast<size_t>(i);
      const double u =
          node.side == Side::kResidual ? head_samples()[at] : grid(1)[(at * 7 + 5) % kSamples];
      after[at] = op.eval(samples_[at], u, number(node.c), number(node.d));
    }
    if (!is_sensible(samples_, after)) return false;
    samples_ = std::move(after);
    draw_surface(node, op.torch.size(), op.layer[0] != '\0');
    node.inputs = {value_};
    if (op.is_binary) node.inputs.push_back(side_value(node.side));
    add_node(node, shape_);
    return true;
  }

  static double number(const std::string& literal) {
    return literal.empty() ? 0 : std::stod(literal);
  }

  static void set_literals(Node& node, const std::string& text) {
    const size_t comma = text.find(',');
    node.c = text.substr(0, comma);
    if (comma != std::string::npos) node.d = text.substr(comma + 1);
  }

  // The input as it came: a value that is not the chain's own any more.
  Samples head_samples() const { return grid(1); }
  bool is_residual_sensible(const Pointwise& op) const {
    const std::string_view name = op.name;
    return name == "add" || name == "mul" || name == "sub";
  }

  std::optional<Side> draw_side(bool broadcasts) {
    std::vector<Side> choices;
    const bool reduced = shape_ != full_shape();
    if (reduced) return std::nullopt;
    const bool allowed = options_.families.contains(Family::kBroadcast);
    if (!broadcasts) {
      const bool has_more = !graph_.has(Side::kInput) && graph_.inputs().size() < 3;
      if (has_more) choices.push_back(Side::kInput);
      const bool may_return = head_value_ >= 0 && value_ != head_value_ && !is_row_done_ &&
                              !graph_.has(Side::kResidual);
      if (may_return) choices.push_back(Side::kResidual);
    }
    if (allowed && !graph_.has(Side::kVector)) choices.push_back(Side::kVector);
    const bool has_column = graph_.has(Side::kColumn) || graph_.inputs().size() >= 3;
    if (allowed && !has_column) choices.push_back(Side::kColumn);
    if (choices.empty()) return std::nullopt;
    return random_.pick(choices);
  }

  int side_value(Side side) {
    std::vector<int> column = outer_shape();
    column.push_back(kOne);
    switch (side) {
      case Side::kInput:
        return add_value(Origin::kInput, next_input_name(), full_shape());
      case Side::kVector:
        return add_value(Origin::kParameter, "s", {last()});
      case Side::kColumn:
        return add_value(Origin::kInput, next_input_name(), column);
      case Side::kResidual:
        return head_value_;
      case Side::kNone:
        break;
    }
    return -1;
  }

  void draw_surface(Node& node, size_t spellings, bool has_layer) {
    const bool is_full = options_.style == Style::kFull;
    if (spellings > 1 && random_.chance(is_full ? 0.6 : 0.25)) {
      node.spelling = random_.below(static_cast<int>(spellings));
    }
    node.is_layer = has_layer && is_full && random_.chance(0.35);
  }

  // ---- Rows
  // --------------------------------------------------------------------------------------

  bool add_row(Family focus) {
    std::vector<const RowOperator*> choices;
    for (const RowOperator& op : row_operators()) {
      if (op.family == focus && allows(op.name)) choices.push_back(&op);
    }
    if (choices.empty()) return false;
    Node node;
    node.row = random_.pick(choices);
    const Samples before = samples_;
    sample_row(*node.row);
    if (!std::ranges::all_of(samples_, [](double v) { return std::abs(v) < 1e4; })) return false;
    draw_surface(node, node.row->torch.size(), node.row->layer[0] != '\0');
    if (node.row->torch.empty()) node.is_layer = true;
    node.inputs = {value_};
    static constexpr const char* kParameters[] = {"norm.weight", "norm.bias"};
    for (int i = 0; i < node.row->num_parameters; ++i) {
      node.inputs.push_back(add_value(Origin::kParameter, kParameters[i], {last()}));
    }
    shape_ = node.row->reduces ? outer_shape() : full_shape();
    is_row_done_ = true;
    add_node(node, shape_);
    return true;
  }

  // Rows of values drawn from the samples so far.
  void sample_row(const RowOperator& op) {
    constexpr size_t kRow = 48;
    const Samples ones(kRow, 1.0), zeros(kRow, 0.0);
    Samples after;
    for (int i = 0; i < kSamples; ++i) {
      Samples row;
      for (size_t j = 0; j < kRow; ++j) row.push_back(random_.pick(samples_));
      Samples out(kRow);
      op.eval(row, ones, zeros, out);
      after.push_back(op.reduces ? out[0] : random_.pick(out));
    }
    samples_ = std::move(after);
  }

  // Constant after construction.
  const DrawOptions& options_;

  Random random_;
  TaskGraph graph_;
  int num_outer_ = 0;  // Dims of the full shape.
  Samples samples_;    // Of the current value.
  std::vector<int> shape_;
  int value_ = -1;       // The current one.
  int head_value_ = -1;  // The input that a residual may come back to.
  bool is_row_done_ = false;
};

}  // namespace

std::optional<TaskGraph> draw_graph(uint64_t seed, uint64_t number, const DrawOptions& options) {
  return Drawing(seed, number, options).run();
}

}  // namespace mc::forge
