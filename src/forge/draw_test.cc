// SPDX-License-Identifier: Apache-2.0
#include "forge/draw.h"

#include <gmock/gmock.h>

#include "forge/interpret.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/reason.h"
#include "forge/render.h"
#include "forge/samples.h"

namespace mc::forge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr uint64_t kSeed = 17;
constexpr uint64_t kTasks = 400;

DrawOptions all_families(Style style) {
  DrawOptions options;
  options.families = {std::begin(kFamilies), std::end(kFamilies)};
  options.style = style;
  return options;
}

std::vector<TaskGraph> graphs(const DrawOptions& options) {
  std::vector<TaskGraph> drawn;
  for (uint64_t i = 0; i < kTasks; ++i) {
    if (auto graph = draw_graph(kSeed, i, options)) drawn.push_back(std::move(*graph));
  }
  return drawn;
}

TEST(DrawGraph, GivesTheSameTaskForTheSameNumberWhateverCameBefore) {
  const DrawOptions options = all_families(Style::kFull);
  const auto alone = draw_graph(kSeed, 123, options);
  ASSERT_TRUE(alone);
  for (uint64_t i = 0; i < 5; ++i) draw_graph(kSeed, i, options);
  EXPECT_EQ(render_module(*draw_graph(kSeed, 123, options)), render_module(*alone));
}

TEST(DrawGraph, FindsAGraphForNearlyEveryNumber) {
  EXPECT_GE(graphs(all_families(Style::kCompact)).size(), kTasks * 98 / 100);
}

TEST(DrawGraph, UsesEveryOperatorOfTheTable) {
  std::set<std::string> seen;
  DrawOptions options = all_families(Style::kFull);
  for (uint64_t i = 0; i < 6000; ++i) {
    if (const auto graph = draw_graph(kSeed, i, options)) {
      for (const std::string& name : graph->operators()) seen.insert(name);
    }
  }
  for (const Pointwise& op : pointwise_operators()) EXPECT_TRUE(seen.contains(op.name)) << op.name;
  for (const RowOperator& op : row_operators()) EXPECT_TRUE(seen.contains(op.name)) << op.name;
  for (const Head& head : heads()) EXPECT_TRUE(seen.contains(head.name)) << head.name;
}

TEST(DrawGraph, KeepsToTheFamiliesAndOperatorsAskedFor) {
  DrawOptions options;
  options.families = {Family::kElementwise, Family::kReduction};
  options.operators = {"relu", "tanh", "sum"};
  for (const TaskGraph& graph : graphs(options)) {
    for (const std::string& name : graph.operators()) EXPECT_TRUE(options.operators.contains(name));
  }
}

TEST(Split, DependsOnTheStructureAlone) {
  std::map<std::string, Split> known;
  for (const TaskGraph& graph : graphs(all_families(Style::kCompact))) {
    const auto [it, is_new] = known.emplace(graph.structure(), split_of(graph, 0.3));
    EXPECT_EQ(it->second, split_of(graph, 0.3)) << graph.structure();
    if (graph.depth() == 1) {
      EXPECT_EQ(it->second, Split::kTrain);
    }
  }
}

TEST(Solutions, AreAtLeastThreeForEveryTask) {
  for (const TaskGraph& graph : graphs(all_families(Style::kFull))) {
    EXPECT_GE(solutions_of(graph).size(), 3u) << graph.structure();
  }
}

TEST(Solutions, LeaveNoMarkOrPlaceholderBehind) {
  for (const TaskGraph& graph : graphs(all_families(Style::kFull))) {
    for (const Solution& solution : solutions_of(graph)) {
      for (const char* left : {"\x01", "\x02", "\x03", "{u}", "{c}", "{d}", "{x}", "{m}", "@"}) {
        EXPECT_THAT(solution.module, Not(HasSubstr(left))) << graph.structure();
      }
    }
  }
}

TEST(Solutions, KeepTheirSitesInsideTheText) {
  for (const TaskGraph& graph : graphs(all_families(Style::kFull))) {
    for (const Solution& solution : solutions_of(graph)) {
      for (const Site& site : solution.sites) {
        EXPECT_LE(site.offset + site.size, solution.cuda.size()) << site.kind;
      }
    }
  }
}

TEST(Bugs, ChangeTheTextAndAreOfManyKinds) {
  std::set<std::string> kinds;
  for (const TaskGraph& graph : graphs(all_families(Style::kFull))) {
    for (const Solution& solution : solutions_of(graph)) {
      for (const Bug& bug : bugs_of(graph, solution)) {
        EXPECT_NE(with_bugs(solution, {bug}), solution.cuda) << bug.kind;
        kinds.insert(bug.kind);
      }
    }
  }
  EXPECT_GE(kinds.size(), 15u);
}

TEST(Bugs, CanBeTwoAtOnce) {
  const auto graph = draw_graph(kSeed, 3, all_families(Style::kCompact));
  ASSERT_TRUE(graph);
  const Solution solution = solutions_of(*graph).front();
  Bug first{"a", "wrong", "", "", 0, 1, "AA"}, second{"b", "wrong", "", "", 5, 2, ""};
  EXPECT_EQ(with_bugs(solution, {first, second}),
            "AA" + solution.cuda.substr(1, 4) + solution.cuda.substr(7));
  EXPECT_FALSE(overlap(first, second));
  EXPECT_TRUE(overlap(first, first));
}

TEST(Interpreter, ComputesAChainByHand) {
  DrawOptions options;
  options.families = {Family::kReduction};
  options.operators = {"sum"};
  const auto graph = draw_graph(1, 0, options);
  ASSERT_TRUE(graph);
  const std::vector<Array> arrays = interpret(*graph);
  const Array& in = arrays.front();
  const Array& out = arrays.back();
  ASSERT_THAT(out.values, SizeIs(3));
  double sum = 0;
  for (size_t j = 0; j < 5; ++j) sum += in.values[5 + j];
  EXPECT_DOUBLE_EQ(out.values[1], sum);
}

TEST(Reasoning, HasSixStepsAndTheTasksOwnSizes) {
  const auto graph = draw_graph(kSeed, 8, all_families(Style::kFull));
  ASSERT_TRUE(graph);
  const std::string text = reasoning(*graph, solutions_of(*graph).front());
  EXPECT_THAT(text, AllOf(HasSubstr("1. "), HasSubstr("6. ")));
  EXPECT_THAT(text, HasSubstr(std::to_string(graph->dims.front().size)));
  EXPECT_THAT(metadata_table(*graph), HasSubstr("| output |"));
}

TEST(Rows, AreOneLineOfJson) {
  const auto graph = draw_graph(kSeed, 5, all_families(Style::kCompact));
  ASSERT_TRUE(graph);
  const std::string row = generation_row(*graph, Style::kCompact, solutions_of(*graph).front());
  EXPECT_THAT(row, Not(HasSubstr("\n")));
  EXPECT_THAT(row, HasSubstr("\"kind\":\"generation\""));
}

}  // namespace
}  // namespace mc::forge
