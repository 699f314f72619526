// SPDX-License-Identifier: Apache-2.0
#include "forge/variants.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/random.h"
#include "forge/reason.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;
using Features = std::vector<std::string>;

constexpr size_t kSingleFeaturesMax = 2;

const std::set<std::string>& algorithms() {
  static const std::set<std::string> kAlgorithms = {"atomics", "online_softmax", "split_k",
                                                    "welford"};
  return kAlgorithms;
}

Json json_of(const Variant& variant) {
  return {{"features", variant.features}, {"reason", variant.reason}, {"code", variant.code}};
}

Json json_of(const std::optional<Variant>& variant) {
  return variant ? json_of(*variant) : Json(nullptr);
}

Json json_of(const Variants& variants) {
  Json json;
  json["baseline"] = json_of(variants.baseline);
  json["single_feature"] = Json::array();
  for (const Variant& one : variants.single_feature) json["single_feature"].push_back(json_of(one));
  json["algorithm"] = json_of(variants.algorithm);
  json["composite"] = json_of(variants.composite);
  return json;
}

Variant variant_from(const Json& json) {
  return {json.at("features"), json.at("reason"), json.at("code")};
}

std::optional<Variant> optional_from(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(variant_from(json));
}

Features features_of(const Template& used) {
  return used.combines.empty() ? Features{used.feature} : used.combines;
}

// Templates of one stage by what they show.
using ByFeatures = std::map<Features, std::vector<const Template*>>;

ByFeatures fitting(const TaskGraph& graph, const Stage& stage, const TemplateLibrary& library) {
  ByFeatures found;
  for (const Template& used : library.templates) {
    if (fits(used, graph, stage)) found[features_of(used)].push_back(&used);
  }
  return found;
}

const Features kBaseline = {"baseline"};

// The choices of one stage, with those whose features the composite has first.
std::vector<std::pair<Role, const Template*>> choices_of(const ByFeatures& all, Random& random) {
  std::vector<Features> singles, changes, composites;
  for (const auto& [features, templates] : all) {
    if (features == kBaseline) continue;
    (features.size() > 1                       ? composites
     : algorithms().contains(features.front()) ? changes
                                               : singles)
        .push_back(features);
  }
  std::vector<std::pair<Role, const Template*>> made;
  const auto add = [&](Role role, const Features& features) {
    made.emplace_back(role, random.pick(all.at(features)));
  };
  add(Role::kBaseline, kBaseline);
  const Features composite = composites.empty() ? Features() : random.pick(composites);
  const auto is_apart = [&](const Features& features) {
    return std::ranges::find(composite, features.front()) == composite.end();
  };
  for (auto* features : {&singles, &changes}) {
    for (size_t i = features->size(); i > 1; --i) {
      std::swap((*features)[i - 1],
                (*features)[static_cast<size_t>(random.below(static_cast<int>(i)))]);
    }
    std::ranges::stable_sort(*features, {}, is_apart);
  }
  for (size_t i = 0; i < std::min(kSingleFeaturesMax, singles.size()); ++i) {
    add(Role::kSingleFeature, singles[i]);
  }
  if (!changes.empty()) add(Role::kAlgorithm, changes.front());
  if (!composite.empty()) add(Role::kComposite, composite);
  return made;
}

}  // namespace

std::string variants_text(const Variants& variants) { return json_of(variants).dump(1) + "\n"; }

Result<Variants> read_variants(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Variants read{variant_from(json.at("baseline")),
                  {},
                  optional_from(json.at("algorithm")),
                  optional_from(json.at("composite"))};
    for (const Json& one : json.at("single_feature")) {
      read.single_feature.push_back(variant_from(one));
    }
    // All that was read, written again, is all that there was.
    if (nlohmann::json(json_of(read)) == nlohmann::json(json)) return read;
    return invalid("variants: a member that the schema does not have");
  } catch (const Json::exception& error) {
    return invalid(std::string("variants: ") + error.what());
  }
}

std::vector<PlannedVariant> plan_variants(const TaskGraph& graph, const TemplateLibrary& library) {
  Random random(graph.seed, "variants", graph.number);
  std::vector<const Template*> plain;
  std::vector<std::pair<Role, const Template*>> best;
  size_t changed = 0;
  for (const Stage& stage : stages_of(graph)) {
    const ByFeatures all = fitting(graph, stage, library);
    if (!all.contains(kBaseline)) return {};
    const auto choices = choices_of(all, random);
    // A scan by rows begins each anew, so its baseline is none to compare with.
    const bool is_scan = stage.core != nullptr && stage.core->form->scan.has_value();
    if (!is_scan && choices.size() > best.size()) best = choices, changed = plain.size();
    plain.push_back(all.at(kBaseline).front());
  }
  std::vector<PlannedVariant> made;
  if (best.size() < kVariantsMin) return made;
  for (const auto& [role, used] : best) {
    plain[changed] = used;
    made.push_back({role, solution_with(graph, plain)});
  }
  return made;
}

Variants variants_of(const TaskGraph& graph,
                     const std::vector<std::pair<Role, const Solution*>>& solutions) {
  MC_CHECK(!solutions.empty() && solutions.front().first == Role::kBaseline);
  const Solution& baseline = *solutions.front().second;
  Variants made;
  for (const auto& [role, solution] : solutions) {
    Variant variant{{}, variant_sentences(graph, *solution, baseline), solution->module};
    for (size_t k = 0; k < solution->parts.size() && role != Role::kBaseline; ++k) {
      if (solution->parts[k].used == baseline.parts[k].used) continue;
      variant.features = features_of(*solution->parts[k].used);
    }
    switch (role) {
      case Role::kBaseline:
        made.baseline = std::move(variant);
        break;
      case Role::kSingleFeature:
        made.single_feature.push_back(std::move(variant));
        break;
      case Role::kAlgorithm:
        made.algorithm = std::move(variant);
        break;
      case Role::kComposite:
        made.composite = std::move(variant);
        break;
    }
  }
  return made;
}

}  // namespace mc::forge
