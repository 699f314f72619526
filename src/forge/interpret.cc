// SPDX-License-Identifier: Apache-2.0
#include "forge/interpret.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/text.h"
#include "forge/views.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

// The slots of the names that every form has (operators.cc, bind_form).
enum Slot : size_t { kV, kU, kW, kA, kB, kS, kF, kC, kD, kCount };

size_t count_of(const std::vector<int>& shape) {
  size_t count = 1;
  for (const int size : shape) count *= static_cast<size_t>(size);
  return count;
}

double literal(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

double combine(Combine how, double into, double value) {
  switch (how) {
    case Combine::kSum:
      return into + value;
    case Combine::kMax:
      return std::max(into, value);
    case Combine::kMin:
      return std::min(into, value);
    case Combine::kProduct:
      return into * value;
  }
  MC_CHECK(false);
}

double identity(Combine how) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (how == Combine::kMax) return -kInfinity;
  if (how == Combine::kMin) return kInfinity;
  return how == Combine::kProduct ? 1 : 0;
}

// One axis of the loops: its extent, and the slot of its index variable, or -1 if no formula uses
// it.
struct Loop {
  std::string axis;
  int dim = kOne;
  int extent = 1;
  int slot = -1;
  int index = 0;
};

class LoopNest {
 public:
  LoopNest(const TaskGraph& graph, const Node& node, const std::vector<Array>& arrays)
      : graph_(graph), node_(node), form_(*node.form), values_(form_.names.size(), 0.0) {
    MC_CHECK(node.operands.size() == form_.operands.size());
    MC_CHECK(form_.names.size() > kCount);
    for (const int operand : node.operands) {
      operands_.push_back(&arrays.at(static_cast<size_t>(operand)));
    }
    for (size_t i = 0; i < form_.names.size(); ++i) bind_extent(form_.names[i], i);
    values_[kC] = literal(node.c), values_[kD] = literal(node.d);
    for (const Axis& axis : form_.inner) add_loops(axis, inner_);
    for (const Axis& axis : form_.out) {
      if (!std::ranges::any_of(form_.inner, [&](const Axis& a) { return a.name == axis.name; })) {
        add_loops(axis, group_);
      }
    }
    double count = 1;
    for (const Loop& loop : inner_) count *= loop.extent;
    values_[kCount] = count;
    for (size_t i = 0; i < 3 && i < form_.operands.size(); ++i) offsets_.push_back(offsets_of(i));
    is_read_ = {is_used("v"), is_used("u"), is_used("w")};
  }

  Array run() {
    Array out;
    for (const int dim : graph_.value(node_.output).dims) {
      out.shape.push_back(graph_.probe_of(dim));
    }
    out.values.resize(count_of(out.shape));
    const auto strides = strides_of(form_.out);
    if (node_.op->is_pointwise) return pointwise(std::move(out));
    each(group_, [&] {
      passes();
      if (node_.keeps_inner()) {
        each(inner_, [&] { store(out, strides); });
      } else {
        store(out, strides);
      }
    });
    return out;
  }

 private:
  bool is_used(std::string_view name) const {
    const auto has = [&](const Expr& expr) { return mentions(expr, name); };
    return has(form_.result) ||
           std::ranges::any_of(form_.passes, [&](const Pass& pass) { return has(pass.element); });
  }

  // Names in capitals are extents.
  void bind_extent(const std::string& name, size_t slot) {
    if (name == "places") values_[slot] = static_cast<double>(num_places());
    const std::string axis = lower(name);
    const auto found = node_.axes.find(axis);
    if (axis == name || found == node_.axes.end()) return;
    values_[slot] = graph_.probe_of(found->second.front());
  }

  size_t num_places() const {
    size_t count = 1;
    for (const int dim : graph_.value(node_.output).dims) {
      count *= static_cast<size_t>(graph_.probe_of(dim));
    }
    return count;
  }

  void add_loops(const Axis& axis, std::vector<Loop>& loops) {
    const auto& dims = node_.axes.at(axis.name);
    const auto slot = std::ranges::find(form_.names, axis.name);
    for (const int dim : dims) {
      Loop loop{axis.name, dim, graph_.probe_of(dim), -1, 0};
      if (slot != form_.names.end()) loop.slot = static_cast<int>(slot - form_.names.begin());
      loops.push_back(loop);
    }
  }

  using Strides = std::vector<std::pair<const Loop*, int>>;

  // The loop and the stride of each axis of a pattern.
  Strides strides_of(const std::vector<Axis>& pattern) const {
    Strides strides;
    int stride = 1;
    for (size_t i = pattern.size(); i-- > 0;) {
      const auto& dims = node_.axes.at(pattern[i].name);
      for (size_t k = dims.size(); k-- > 0;) {
        if (const Loop* loop = loop_of(pattern[i].name, k)) strides.emplace_back(loop, stride);
        stride *= graph_.probe_of(dims[k]);
      }
    }
    return strides;
  }

  const Loop* loop_of(const std::string& axis, size_t part) const {
    for (const auto* loops : {&group_, &inner_}) {
      size_t at = 0;
      for (const Loop& loop : *loops) {
        if (loop.axis == axis && at++ == part) return &loop;
      }
    }
    return nullptr;
  }

  Strides offsets_of(size_t operand) const { return strides_of(form_.operands[operand].axes); }

  static size_t offset(const Strides& strides) {
    int sum = 0;
    for (const auto& [loop, stride] : strides) sum += loop->index * stride;
    return static_cast<size_t>(sum);
  }

  template <typename Body>
  void each(std::vector<Loop>& loops, const Body& body, size_t level = 0) {
    if (level == loops.size()) return body();
    for (int i = 0; i < loops[level].extent; ++i) {
      loops[level].index = i;
      if (loops[level].slot >= 0) values_[static_cast<size_t>(loops[level].slot)] = i;
      each(loops, body, level + 1);
    }
  }

  void load() {
    for (size_t i = 0; i < offsets_.size(); ++i) {
      if (is_read_[i]) values_[i] = operands_[i]->values[offset(offsets_[i])];
    }
  }

  double eval(const Expr& expr) {
    return evaluate(expr, values_, [&](int tensor, std::span<const int> index) {
      const Array& array = *operands_[static_cast<size_t>(tensor)];
      size_t at = 0;
      for (size_t i = 0; i < index.size(); ++i) {
        if (index[i] < 0 || index[i] >= array.shape[i]) return std::optional<double>();
        at = at * static_cast<size_t>(array.shape[i]) + static_cast<size_t>(index[i]);
      }
      return std::optional(array.values[at]);
    });
  }

  void passes() {
    for (size_t i = 0; i < form_.passes.size(); ++i) {
      const Pass& pass = form_.passes[i];
      double sum = identity(pass.combine);
      each(inner_, [&] {
        load();
        sum = combine(pass.combine, sum, eval(pass.element));
      });
      values_[kA + i] = sum;
      if (pass.finish) values_[kA + i] = eval(*pass.finish);
    }
  }

  void store(Array& out, const Strides& strides) {
    if (form_.inner.empty() || node_.keeps_inner()) load();
    out.values[offset(strides)] = eval(form_.result);
  }

  // Operands are broadcast as in PyTorch.
  Array pointwise(Array out) {
    for (size_t i = 0; i < out.values.size(); ++i) {
      for (size_t k = 0; k < operands_.size(); ++k) {
        values_[k] = operands_[k]->values[broadcast(out.shape, operands_[k]->shape, i)];
      }
      out.values[i] = eval(form_.result);
    }
    return out;
  }

  static size_t broadcast(const std::vector<int>& shape, const std::vector<int>& own, size_t flat) {
    size_t at = 0, stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto size = static_cast<size_t>(shape[shape.size() - 1 - i]);
      const size_t index = flat % size;
      flat /= size;
      if (i >= own.size()) continue;
      const auto width = static_cast<size_t>(own[own.size() - 1 - i]);
      if (width > 1) at += index * stride;
      stride *= width;
    }
    return at;
  }

  const TaskGraph& graph_;
  const Node& node_;
  const Form& form_;
  std::vector<double> values_;  // The values of the form's names.
  std::vector<const Array*> operands_;
  std::vector<Loop> group_, inner_;
  std::vector<Strides> offsets_;  // The strides of v, u and w.
  std::vector<bool> is_read_;
};

}  // namespace

Array drawn_array(const TaskGraph& graph, const Value& value, Random& random) {
  Array array;
  for (const int dim : value.dims) array.shape.push_back(graph.probe_of(dim));
  array.values.resize(count_of(array.shape));
  for (double& v : array.values) {
    v = 4 * random.unit() - 2;
    if (value.draw == Draw::kPositive) v = 0.5 + (v + 2) / 4;
    if (value.draw == Draw::kWhole) v = random.below(2 * kWholeMax + 1) - kWholeMax;
    if (value.draw == Draw::kIndex) v = random.below(graph.probe_of(value.below));
  }
  return array;
}

Array interpret_node(const TaskGraph& graph, const Node& node, const std::vector<Array>& arrays) {
  return LoopNest(graph, node, arrays).run();
}

std::vector<Array> interpret(const TaskGraph& graph, const Change& change) {
  Random random(graph.seed, "probe", graph.number);
  MC_CHECK(!graph.values.empty());
  std::vector<Array> arrays(graph.values.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (graph.values[i].origin != Origin::kNode) {
      arrays[i] = drawn_array(graph, graph.values[i], random);
      if (change) change(graph.values[i], arrays[i]);
    }
  }
  for (const Node& node : graph.nodes) {
    arrays[static_cast<size_t>(node.output)] = interpret_node(graph, node, arrays);
  }
  return arrays;
}

std::string probe_json(const TaskGraph& graph, const Change& change) {
  const std::vector<Array> arrays = interpret(graph, change);
  const auto array = [&](int value) {
    const Array found = base_of(graph.value(value).view, arrays.at(static_cast<size_t>(value)));
    const Type type = graph.value(value).type;
    return Json{{"shape", found.shape},
                {"values", found.values},
                {"is_whole", is_whole(type)},
                {"dtype", to_string(type)}};
  };
  Json probe;
  for (const Dim& dim : graph.dims) {
    if (dim.is_constant()) probe["sizes"][dim.name] = dim.probe;
  }
  probe["inputs"] = Json::array();
  for (const int value : graph.inputs()) probe["inputs"].push_back(array(value));
  probe["parameters"] = Json::array();
  for (const int value : graph.parameters()) {
    Json entry = array(value);
    entry["name"] = graph.value(value).attribute;
    probe["parameters"].push_back(std::move(entry));
  }
  probe["outputs"] = Json::array();
  for (const int value : graph.outputs) probe["outputs"].push_back(array(value));
  return probe.dump();
}

}  // namespace mc::forge
