// SPDX-License-Identifier: Apache-2.0
#include "forge/samples.h"

#include <nlohmann/json.hpp>

#include "forge/random.h"
#include "forge/render.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompactRequest = "Write a CUDA kernel for this PyTorch module.\n";
constexpr const char* kFullSystem =
    "You write CUDA kernels for PyTorch programs. Answer with one Python code block that defines "
    "ModelNew, with the same parameters as Model, and compiles its kernels with load_inline.";
constexpr const char* kFullRequest =
    "Replace the operators of this PyTorch module by CUDA kernels that are right for all sizes.\n";

Json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Json prompt_messages(const TaskGraph& graph, Style style) {
  Json messages = Json::array();
  if (style == Style::kFull) messages.push_back(message("system", kFullSystem));
  messages.push_back(message("user", generation_prompt(graph, style)));
  return messages;
}

void describe(Json& row, const TaskGraph& graph) {
  row["families"] = graph.families();
  row["operators"] = graph.operators();
  row["depth"] = graph.depth();
}

}  // namespace

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "test"; }

Split split_of(const TaskGraph& graph, double test_share) {
  if (graph.depth() < 2) return Split::kTrain;
  return Random(0, "split " + graph.structure(), 0).chance(test_share) ? Split::kTest
                                                                       : Split::kTrain;
}

std::string fenced(const std::string& module) { return "```python\n" + module + "```\n"; }

std::string generation_prompt(const TaskGraph& graph, Style style) {
  const std::string code = fenced(render_module(graph));
  return (style == Style::kCompact ? kCompactRequest : kFullRequest) + code;
}

std::string generation_row(const TaskGraph& graph, Style style, const Solution& solution) {
  Json row;
  row["id"] = graph.id() + "-" + solution.name;
  row["kind"] = "generation";
  row["messages"] = prompt_messages(graph, style);
  row["messages"].push_back(message("assistant", fenced(solution.module)));
  row["task"] = graph.id();
  describe(row, graph);
  row["provenance"] = {
      {"seed", graph.seed}, {"template", solution.name}, {"mutations", Json::array()}};
  return row.dump();
}

std::string prompt_row(const TaskGraph& graph, Style style, Split split, uint64_t index) {
  const std::string reference = render_module(graph);
  Json extra;
  extra["task"] = graph.id();
  extra["split"] = split_name(split);
  extra["index"] = index;
  describe(extra, graph);
  Json row;
  row["id"] = graph.id();
  row["prompt"] = prompt_messages(graph, style);
  row["data_source"] = "musacoder/forge";
  row["reward_model"] = {{"style", "rule"}, {"ground_truth", reference}};
  row["extra_info"] = extra;
  row["label"] = reference;
  row["metadata"] = extra;
  return row.dump();
}

}  // namespace mc::forge
