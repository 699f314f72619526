// SPDX-License-Identifier: Apache-2.0
#include "forge/interpret.h"

#include <algorithm>
#include <string_view>

#include <nlohmann/json.hpp>

#include "forge/random.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

size_t count_of(const std::vector<int>& shape) {
  size_t count = 1;
  for (const int size : shape) count *= static_cast<size_t>(size);
  return count;
}

double literal(const std::string& text) { return text.empty() ? 0 : std::stod(text); }

class Interpreter {
 public:
  explicit Interpreter(const TaskGraph& graph) : graph_(graph) {
    Random random(graph.seed, "probe", graph.number);
    for (const Value& value : graph.values) {
      Array array;
      for (const int dim : value.dims) {
        array.shape.push_back(dim == kOne ? 1 : graph.dims.at(static_cast<size_t>(dim)).probe);
      }
      array.values.resize(count_of(array.shape));
      if (value.origin != Origin::kNode) {
        for (double& v : array.values) v = 4 * random.unit() - 2;
      }
      arrays_.push_back(std::move(array));
    }
  }

  std::vector<Array> run() {
    for (const Node& node : graph_.nodes) {
      if (node.head != nullptr) head(node);
      if (node.pointwise != nullptr) pointwise(node);
      if (node.row != nullptr) row(node);
    }
    return std::move(arrays_);
  }

 private:
  const Array& input(const Node& node, size_t i) const {
    return arrays_.at(static_cast<size_t>(node.inputs.at(i)));
  }
  Array& output(const Node& node) { return arrays_.at(static_cast<size_t>(node.output)); }

  void head(const Node& node) {
    Array& out = output(node);
    const auto rows = static_cast<size_t>(out.shape[0]),
               columns = static_cast<size_t>(out.shape[1]);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t j = 0; j < columns; ++j)
        out.values[r * columns + j] = head_at(node, r, j, columns);
    }
  }

  double head_at(const Node& node, size_t r, size_t j, size_t columns) const {
    const std::string_view name = node.head->name;
    const auto& x = input(node, 0).values;
    const auto& y = input(node, 1).values;
    if (name == "outer_add") return x[r] + y[j];
    if (name == "outer_sub") return x[r] - y[j];
    if (name == "outer_mul") return x[r] * y[j];
    const auto inner = static_cast<size_t>(input(node, 0).shape[1]);
    double sum = name == "linear" ? input(node, 2).values[j] : 0;
    for (size_t l = 0; l < inner; ++l) {
      sum += x[r * inner + l] * (name == "matmul" ? y[l * columns + j] : y[j * inner + l]);
    }
    return sum;
  }

  void pointwise(const Node& node) {
    Array& out = output(node);
    const auto columns = static_cast<size_t>(out.shape.back());
    for (size_t i = 0; i < out.values.size(); ++i) {
      double u = 0;
      if (node.side == Side::kVector) u = input(node, 1).values[i % columns];
      if (node.side == Side::kColumn) u = input(node, 1).values[i / columns];
      if (node.side == Side::kInput || node.side == Side::kResidual) u = input(node, 1).values[i];
      out.values[i] =
          node.pointwise->eval(input(node, 0).values[i], u, literal(node.c), literal(node.d));
    }
  }

  void row(const Node& node) {
    Array& out = output(node);
    const Array& in = input(node, 0);
    const auto columns = static_cast<size_t>(in.shape.back());
    const size_t width = node.row->reduces ? 1 : columns;
    const std::vector<double> none(columns, 0.0);
    const auto& g = node.inputs.size() > 1 ? input(node, 1).values : none;
    const auto& h = node.inputs.size() > 2 ? input(node, 2).values : none;
    for (size_t r = 0; r < in.values.size() / columns; ++r) {
      node.row->eval(std::span(in.values).subspan(r * columns, columns), g, h,
                     std::span(out.values).subspan(r * width, width));
    }
  }

  const TaskGraph& graph_;
  std::vector<Array> arrays_;
};

}  // namespace

std::vector<Array> interpret(const TaskGraph& graph) { return Interpreter(graph).run(); }

std::string probe_json(const TaskGraph& graph) {
  const std::vector<Array> arrays = interpret(graph);
  const auto array = [&](int value) {
    const Array& found = arrays.at(static_cast<size_t>(value));
    return Json{{"shape", found.shape}, {"values", found.values}};
  };
  Json probe;
  for (const Dim& dim : graph.dims) probe["sizes"][dim.name] = dim.probe;
  probe["inputs"] = Json::array();
  for (const int value : graph.inputs()) probe["inputs"].push_back(array(value));
  probe["parameters"] = Json::array();
  for (const int value : graph.parameters()) {
    Json entry = array(value);
    entry["name"] = graph.values.at(static_cast<size_t>(value)).name;
    probe["parameters"].push_back(std::move(entry));
  }
  probe["output"] = array(graph.nodes.back().output);
  return probe.dump();
}

}  // namespace mc::forge
