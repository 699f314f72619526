// SPDX-License-Identifier: Apache-2.0
#include "forge/variants.h"

#include <set>

#include <gmock/gmock.h>

#include "forge/library.h"
#include "forge/sample_graph.h"

namespace mc::forge {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

const Library& whole_library() {
  static const Library kLibrary = load_library(MC_SOURCE_DIR "/data/forge").value();
  return kLibrary;
}

// Graphs of full style of one operator, in one kernel.
TaskGraph graph_of(const std::string& operator_name) {
  GraphOptions options;
  options.families = {"softmax", "scan"};  // None of gradients.
  options.operators = {operator_name};
  options.style = Style::kFull;
  options.depth = 1;
  return sample_graph(whole_library().operators, 1, 0, options).value();
}

const Variants kVariants = {{{}, {"One."}, "a = \"1\"\n"},
                            {{{"unrolled"}, {"Two."}, "b"}},
                            std::nullopt,
                            Variant{{"vectorised", "grid_stride"}, {}, "c"}};

TEST(Variants, AreReadAsTheyAreWritten) {
  const std::string text = variants_text(kVariants);
  EXPECT_EQ(read_variants(text).value(), kVariants);
  EXPECT_THAT(text, ::testing::HasSubstr(R"("algorithm": null)"));
}

TEST(Variants, ThatDifferFromTheSchemaAreRefused) {
  const std::string text = variants_text(kVariants);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  for (const std::string& wrong :
       {with(R"("algorithm": null,)", ""), with(R"("algorithm": null)", R"("algorithm": [])"),
        with("{", R"({"more": 1,)"), with(R"("code": "b")", R"("code": "b", "more": 1)"),
        with(R"("code": "b")", R"("code": 1)"), with("\"unrolled\"", "1"), text + "And more.",
        "```json\n" + text + "```\n"}) {
    EXPECT_FALSE(read_variants(wrong)) << wrong;
  }
}

TEST(Variants, ChangeTheBaselineByOneFeatureAnAlgorithmAndSeveralFeatures) {
  const TaskGraph graph = graph_of("softmax");
  const auto planned = plan_variants(graph, whole_library().kernels);
  std::vector<std::pair<Role, const Solution*>> solutions;
  std::set<std::string> codes;
  for (const PlannedVariant& one : planned) {
    solutions.emplace_back(one.role, &one.solution);
    codes.insert(one.solution.module);
  }
  EXPECT_EQ(codes.size(), planned.size());
  const Variants made = variants_of(graph, solutions);
  EXPECT_THAT(made.baseline.features, IsEmpty());
  EXPECT_THAT(made.baseline.reason, Not(IsEmpty()));
  ASSERT_THAT(made.single_feature, Not(IsEmpty()));
  for (const Variant& one : made.single_feature) EXPECT_EQ(one.features.size(), 1u);
  ASSERT_TRUE(made.algorithm && made.composite);
  EXPECT_EQ(made.algorithm->features, std::vector<std::string>{"online_softmax"});
  EXPECT_GT(made.composite->features.size(), 1u);
}

TEST(Variants, AreNoneOfAScan) {
  EXPECT_THAT(plan_variants(graph_of("cumsum"), whole_library().kernels), IsEmpty());
}

}  // namespace
}  // namespace mc::forge
