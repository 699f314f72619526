// SPDX-License-Identifier: Apache-2.0
#include "forge/unit_tests.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/interpret.h"
#include "forge/render.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGrain = 64;  // Values are multiples of 1 / kGrain.
constexpr double kLarge = 64;
constexpr double kTolerance = 1e-4, kToleranceHalf = 1e-2;

void round_to_grain(Array& array) {
  for (double& v : array.values) v = std::round(v * kGrain) / kGrain;
}

struct TestValues {
  const char* name;
  // The change of inputs that are drawn from the normal distribution.
  void (*change)(std::vector<double>& values);
};

constexpr TestValues kTestValues[] = {
    {"drawn", [](std::vector<double>&) {}},
    {"zeros", [](std::vector<double>& values) { std::ranges::fill(values, 0.0); }},
    {"negative",
     [](std::vector<double>& values) {
       for (double& v : values) v = -std::abs(v);
     }},
    {"one_large", [](std::vector<double>& values) { values.front() = kLarge; }},
};

int num_elements(const Json& probe) {
  size_t count = 0;
  for (const char* part : {"inputs", "parameters", "outputs"}) {
    for (const Json& array : probe[part]) count += array["values"].size();
  }
  return static_cast<int>(count);
}

bool is_finite(const Json& probe) {
  return std::ranges::all_of(probe["outputs"], [](const Json& array) {
    return std::ranges::none_of(array["values"], &Json::is_null);  // JSON represents NaN as null.
  });
}

}  // namespace

std::vector<std::string> unit_tests_of(const TaskGraph& graph) {
  std::vector<std::string> tests;
  std::set<std::string> seen;
  for (const TestValues& kind : kTestValues) {
    Json probe = Json::parse(probe_json(graph, [&](const Value& value, Array& array) {
      if (is_whole(value.type)) return;
      round_to_grain(array);
      if (value.origin == Origin::kInput && value.draw == Draw::kNormal) kind.change(array.values);
    }));
    if (num_elements(probe) > kTestElementsMax) return {};
    if (!is_finite(probe)) continue;
    if (!seen.insert(probe["inputs"].dump()).second) continue;
    probe["values"] = kind.name;
    probe["tolerance"] = is_half(graph.type) ? kToleranceHalf : kTolerance;
    tests.push_back(probe.dump());
  }
  return tests;
}

std::string unit_test_row(const TaskGraph& graph, const std::vector<std::string>& tests) {
  MC_CHECK(!tests.empty());
  Json row{{"task", graph.id()}, {"init", Json::array()}, {"tests", Json::array()}};
  for (const std::string& name : construction_of(graph, Layers::kAll).sizes) {
    const auto dim = std::ranges::find(graph.dims, name, &Dim::name);
    MC_CHECK(dim != graph.dims.end());
    row["init"].push_back(dim->probe);
  }
  for (const std::string& test : tests) row["tests"].push_back(Json::parse(test));
  return row.dump();
}

}  // namespace mc::forge
