// SPDX-License-Identifier: Apache-2.0
#include "forge/operator_mutation.h"

#include <map>

#include <gmock/gmock.h>

#include "forge/library.h"
#include "forge/sample_graph.h"

namespace mc::forge {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kTasks = 80;

const Library& library() {
  static const Library kLibrary = load_library(MC_SOURCE_DIR "/data/forge").value();
  return kLibrary;
}

std::optional<TaskGraph> drawn(uint64_t number, std::set<std::string> families) {
  GraphOptions options;
  options.families = std::move(families);
  return sample_graph(library().operators, 17, number, options);
}

struct MutatedKernel {
  std::string before, after;
  Bug bug;
};

std::optional<MutatedKernel> mutation(const TaskGraph& graph, uint64_t seed) {
  const Solution solution = solutions_of(graph, library().kernels).front();
  Random random(seed, "misread", graph.number);
  auto bug = operator_mutation_of(graph, solution, library().kernels, library().operators, random);
  if (!bug) return std::nullopt;
  return MutatedKernel{solution.cuda, with_bugs(solution, {*bug}), *bug};
}

TEST(OperatorMutation, MostTasksHaveOneAndAllKindsOccur) {
  std::map<std::string, int> kinds;
  int num_graphs = 0, num_mutations = 0;
  for (uint64_t i = 0; i < kTasks; ++i) {
    const auto graph = drawn(i, {"elementwise", "reduction", "softmax", "normalisation"});
    if (!graph) continue;
    ++num_graphs;
    const auto found = mutation(*graph, i);
    if (!found) continue;
    ++num_mutations;
    ++kinds[found->bug.kind];
  }
  EXPECT_GE(num_mutations, num_graphs * 3 / 4);
  EXPECT_GT(kinds["wrong_operation"], 0);
  EXPECT_GT(kinds["missing_operation"], 0);
  EXPECT_GT(kinds["operations_in_wrong_order"], 0);
  EXPECT_EQ(kinds.size(), 3u);
}

TEST(OperatorMutation, GivesAKernelWithTheSameTensors) {
  for (uint64_t i = 0; i < kTasks; ++i) {
    const auto graph = drawn(i, {"elementwise", "reduction", "matmul"});
    const auto found = graph ? mutation(*graph, i) : std::nullopt;
    if (!found) continue;
    EXPECT_NE(found->after, found->before);
    EXPECT_EQ(signature_of(found->after), signature_of(found->before));
    EXPECT_EQ(found->bug.expected, "wrong");
    EXPECT_THAT(found->bug.cause, HasSubstr("module"));
  }
}

// A name from the changed graph would reveal the bug.
TEST(OperatorMutation, KeepsTheNamesOfTheTasksOwnOperators) {
  int num_mutations = 0;
  for (uint64_t i = 0; i < kTasks; ++i) {
    auto graph = drawn(i, {"elementwise", "reduction", "softmax"});
    if (!graph) continue;
    graph->style = Style::kFull;
    const auto found = mutation(*graph, i);
    if (!found) continue;
    ++num_mutations;
    EXPECT_EQ(function_of(found->after), function_of(found->before));
    const size_t kernel = found->before.find("__global__");
    const size_t size = found->before.find('(', kernel) - kernel;
    EXPECT_NE(found->after.find(found->before.substr(kernel, size)), std::string::npos);
  }
  EXPECT_GT(num_mutations, 5);
}

TEST(OperatorMutation, IsDeterminedByItsSeed) {
  const auto graph = drawn(3, {"elementwise"});
  ASSERT_TRUE(graph);
  const auto one = mutation(*graph, 5), same = mutation(*graph, 5);
  ASSERT_TRUE(one && same);
  EXPECT_EQ(one->after, same->after);
}

TEST(OperatorMutation, HasNoResultForGradients) {
  int num_graphs = 0;
  for (uint64_t i = 0; i < 8; ++i) {
    const auto graph = drawn(i, {"backward"});
    if (!graph) continue;
    ++num_graphs;
    EXPECT_FALSE(mutation(*graph, i));
  }
  EXPECT_GT(num_graphs, 0);
}

}  // namespace
}  // namespace mc::forge
