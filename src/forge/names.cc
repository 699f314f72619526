// SPDX-License-Identifier: Apache-2.0
#include "forge/names.h"

#include <algorithm>
#include <set>

#include "forge/code.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

// Names for the results of passes over a row, such as "mean" and "largest".
void name_results(const Stage& stage, std::map<std::string, std::string>& names) {
  if (stage.core == nullptr) return;
  std::set<std::string> taken;
  const auto& passes = stage.core->form->passes;
  for (size_t i = 0; i < passes.size(); ++i) {
    std::string name = passes[i].finish ? "mean" : "sum";
    if (passes[i].combine == Combine::kMax) name = "largest";
    if (passes[i].combine == Combine::kMin) name = "smallest";
    if (passes[i].combine == Combine::kProduct) name = "running_product";
    if (name == "mean" && taken.contains(name)) name = "variance";
    if (taken.insert(name).second) names[Code::accumulator(i)] = name;
  }
}

}  // namespace

std::map<std::string, std::string> names_of(const TaskGraph& graph, const Stage& stage,
                                            const Template& used, const std::string& code) {
  std::map<std::string, std::string> names = {
      {"o", "out"}, {"r", "row"}, {"j", "col"}, {"v", "value"}, {"u", "other"}};
  if (used.walk == Walk::kTiles) {
    names.insert({{"q", "k"}, {"l", "batch_index"}, {"a", "sum"}});
  } else if (used.walk != Walk::kElements) {
    name_results(stage, names);
    names["p"] = "partial";
  }
  if (used.walk != Walk::kElements) names["n"] = "rows", names["m"] = "cols";
  for (const auto& [name, longer] : used.names) names[name] = longer;
  const auto has_third = [&](const Node* node) { return node->operands.size() > 2; };
  if ((stage.core != nullptr && has_third(stage.core)) ||
      std::ranges::any_of(stage.nodes, has_third)) {
    names.erase("w");  // The third operand.
  }
  std::vector<Site> sites;
  const std::string plain = without_marks(code, sites);
  std::set<std::string> targets;
  for (const Value& value : graph.values) {
    if (value.origin != Origin::kNode) names.erase(value.name), targets.insert(value.name);
  }
  std::erase_if(names, [&](const auto& entry) {
    const bool is_taken = has_word(plain, entry.second) && !names.contains(entry.second);
    return is_taken || !targets.insert(entry.second).second;
  });
  return names;
}

}  // namespace mc::forge
