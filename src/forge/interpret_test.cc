// SPDX-License-Identifier: Apache-2.0
#include "forge/interpret.h"

#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/file.h"
#include "forge/library.h"
#include "forge/render.h"
#include "forge/sample_graph.h"

namespace mc::forge {
namespace {

// The maximum number of draws until an operator has occurred in every spelling.
constexpr uint64_t kTries = 400;

std::string line_of(const TaskGraph& graph, const std::string& probe) {
  return nlohmann::json{{"source", render_module(graph)}, {"probe", nlohmann::json::parse(probe)}}
             .dump() +
         "\n";
}

// A key for each way in which the operator is written in the graph.
std::set<std::string> spellings_of(const TaskGraph& graph, const std::string& name) {
  std::set<std::string> found;
  for (const Node& node : graph.nodes) {
    if (node.op->name != name) continue;
    const auto form = node.form - node.op->forms.data();
    found.insert(std::to_string(form) + (node.layer.empty() ? std::to_string(node.spelling) : "l"));
  }
  return found;
}

size_t num_spellings_of(const Operator& op) {
  return op.forms.size() * (op.torch.size() + (op.layer.empty() ? 0 : 1));
}

void compare_with_pytorch(const std::string& lines) {
  const auto folder = TemporaryDirectory::create("probes");
  ASSERT_TRUE(folder);
  const auto path = folder->path() / "probes.jsonl";
  ASSERT_TRUE(write_file_atomically(path, lines));
  const auto done =
      compile::run_tool({compile::default_python().string(),
                         MC_SOURCE_DIR "/python/harness/forge/check_probes.py", path.string()});
  EXPECT_TRUE(done) << done.error().message;
}

// The gradients in the graph with the index of their form, as in "sum_backward 0".
std::set<std::string> gradients_in(const TaskGraph& graph, const Operator& op) {
  std::set<std::string> found;
  for (const Node& node : graph.nodes) {
    for (const Operator& gradient : op.gradients) {
      if (node.op != &gradient) continue;
      found.insert(gradient.name + " " + std::to_string(node.form - gradient.forms.data()));
    }
  }
  return found;
}

// The number of gradients that need a node; a gradient that equals the output's own needs none.
size_t num_gradients(const Operator& op) {
  size_t count = 0;
  for (const Operator& gradient : op.gradients) {
    const bool is_own = op.is_pointwise && gradient.forms[0].result.kind == Expr::Kind::kName;
    count += is_own ? 0 : gradient.forms.size();
  }
  return count;
}

TEST(Interpreter, AgreesWithPyTorchOnEveryGradient) {
  if (!compile::find_pytorch(compile::default_python())) GTEST_SKIP() << "no PyTorch";
  const auto library = load_library(MC_SOURCE_DIR "/data/forge");
  ASSERT_TRUE(library) << library.error().message;
  std::string lines;
  for (const Operator& op : library->operators) {
    if (num_gradients(op) == 0) continue;
    GraphOptions options;
    options.style = Style::kFull;
    options.depth = 3;
    options.families = {"backward"};
    // The gradient of a linear operator does not depend on the input, so operators whose gradient
    // does are added.
    options.operators = {op.name, "sin", "softplus", "mul"};
    std::set<std::string> seen;
    for (uint64_t i = 0; i < kTries && seen.size() < num_gradients(op); ++i) {
      const auto graph = sample_graph(library->operators, 1, i, options);
      if (!graph) continue;
      const std::string probe = probe_json(*graph);
      const auto gradients = gradients_in(*graph, op);
      if (probe.find("null") != std::string::npos || std::ranges::includes(seen, gradients)) {
        continue;
      }
      seen.insert(gradients.begin(), gradients.end());
      lines += line_of(*graph, probe);
    }
    EXPECT_EQ(seen.size(), num_gradients(op)) << op.name << ": not all of its gradients were drawn";
  }
  compare_with_pytorch(lines);
}

TEST(Interpreter, AgreesWithPyTorchOnInputsThatAreViews) {
  if (!compile::find_pytorch(compile::default_python())) GTEST_SKIP() << "no PyTorch";
  const auto library = load_library(MC_SOURCE_DIR "/data/forge");
  ASSERT_TRUE(library) << library.error().message;
  GraphOptions options;
  options.families = {"elementwise", "reduction", "matmul", "backward"};
  options.views_share = 1;
  std::set<View> views;
  std::string lines;
  for (uint64_t i = 0; i < 40; ++i) {
    const auto graph = sample_graph(library->operators, 2, i, options);
    const std::string probe = graph ? probe_json(*graph) : "null";
    if (probe.find("null") != std::string::npos) continue;
    for (const Value& value : graph->values) views.insert(value.view);
    lines += line_of(*graph, probe);
  }
  EXPECT_EQ(views.size(), 4u);
  compare_with_pytorch(lines);
}

TEST(Interpreter, AgreesWithPyTorchOnEveryOperatorInEverySpelling) {
  if (!compile::find_pytorch(compile::default_python())) GTEST_SKIP() << "no PyTorch";
  const auto library = load_library(MC_SOURCE_DIR "/data/forge");
  ASSERT_TRUE(library) << library.error().message;
  std::string lines;
  for (const Operator& op : library->operators) {
    GraphOptions options;
    options.style = Style::kFull;
    options.depth = 1;
    options.families = {op.family};
    options.operators = {op.name};
    std::set<std::string> seen;
    for (uint64_t i = 0; i < kTries && seen.size() < num_spellings_of(op); ++i) {
      const auto graph = sample_graph(library->operators, 1, i, options);
      if (!graph) continue;
      const std::string probe = probe_json(*graph);
      // The probe has values outside the operator's domain.
      if (probe.find("null") != std::string::npos) continue;
      const auto spellings = spellings_of(*graph, op.name);
      if (std::ranges::includes(seen, spellings)) continue;
      seen.insert(spellings.begin(), spellings.end());
      lines += line_of(*graph, probe);
    }
    EXPECT_FALSE(seen.empty()) << op.name << " cannot be drawn";
  }
  compare_with_pytorch(lines);
}

}  // namespace
}  // namespace mc::forge
