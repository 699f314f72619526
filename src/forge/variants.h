// SPDX-License-Identifier: Apache-2.0
//
// Variants: a task's kernels rewritten several times, as one strict JSON object (MusaCoder, stage 3
// of the data synthesis).
//
//   {"baseline": V, "single_feature": [V, …], "algorithm": V or null, "composite": V or null}
//   V = {"features": ["warp_shuffles"], "reason": ["…", …], "code": "import torch…"}
//
// The variants differ in the kernel of one stage; all others are baselines.
// lab/texts/text_truth.py compares features and reasons with the code.
#ifndef MC_FORGE_VARIANTS_H_
#define MC_FORGE_VARIANTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "forge/kernels.h"

namespace mc::forge {

struct Variant {
  std::vector<std::string> features;  // Optimisations; none of a baseline.
  std::vector<std::string> reason;    // Sentences: its kernels, and how they differ from baseline.
  std::string code;                   // The answer's module.
  bool operator==(const Variant&) const = default;
};

struct Variants {
  Variant baseline;
  std::vector<Variant> single_feature;  // The baseline with one optimisation each.
  std::optional<Variant> algorithm;     // The baseline by another algorithm.
  std::optional<Variant> composite;     // Several optimisations at once.
  bool operator==(const Variants&) const = default;
};

// The baseline and all others that are there; they point into `variants`.
template <typename Set>
auto all_of(Set& variants) {
  std::vector<decltype(&variants.baseline)> found = {&variants.baseline};
  for (auto& one : variants.single_feature) found.push_back(&one);
  if (variants.algorithm) found.push_back(&*variants.algorithm);
  if (variants.composite) found.push_back(&*variants.composite);
  return found;
}

// Indented, with the members in the order above.
std::string variants_text(const Variants& variants);

// The inverse.  kInvalidInput where a member is missing, of another type, or not in the schema.
Result<Variants> read_variants(std::string_view text);

// The place of a solution among the variants.
enum class Role { kBaseline, kSingleFeature, kAlgorithm, kComposite };
struct PlannedVariant {
  Role role;
  Solution solution;
};

// One baseline, then up to two single features, an algorithm and a composite: fewer than
// kVariantsMin where the templates do not give more.  Features of the composite come first.
std::vector<PlannedVariant> plan_variants(const TaskGraph& graph, const TemplateLibrary& library);
inline constexpr size_t kVariantsMin = 3;

// The object of solutions of plan_variants(), of which the first is the baseline.
Variants variants_of(const TaskGraph& graph,
                     const std::vector<std::pair<Role, const Solution*>>& solutions);

}  // namespace mc::forge

#endif  // MC_FORGE_VARIANTS_H_
