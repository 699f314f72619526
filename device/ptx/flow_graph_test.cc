// SPDX-License-Identifier: Apache-2.0
#include "ptx/flow_graph.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

namespace mc::ptx {
namespace {

using testing::ElementsAre;

Function function_of(const std::string& body) {
  const std::string text =
      ".version 8.0\n.target sm_80\n.entry k()\n{\n"
      ".reg .pred %p<9>; .reg .b32 %r<9>;\n" +
      body + "\n}\n";
  Result<Module> module = parse(text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? module->functions.at(0) : Function{};
}

std::vector<BasicBlock> graph_of(const std::string& body) {
  return flow_graph(function_of(body)).value();
}

TEST(PtxFlowGraph, JoinsBothSidesOfABranchBehindThem) {
  const auto graph = graph_of("@%p1 bra $b;\nmembar.gl;\nbra $c;\n$b: membar.cta;\n$c: ret;");
  ASSERT_EQ(graph.size(), 5U);
  EXPECT_THAT(graph[0].next, ElementsAre(2, 1));
  EXPECT_EQ(graph[0].join, 3);
  EXPECT_EQ(graph[3].join, 4);
}

TEST(PtxFlowGraph, JoinsTheLanesOfALoopBehindIt) {
  const auto graph = graph_of("$a: membar.gl;\n@%p1 bra $a;\nret;");
  EXPECT_THAT(graph[0].next, ElementsAre(0, 1));
  EXPECT_EQ(graph[0].join, 1);
}

TEST(PtxFlowGraph, GivesALoopWithoutEndNoJoin) {
  const auto graph = graph_of("$a: membar.gl;\nbra $a;");
  EXPECT_EQ(graph[0].join, -1);
}

TEST(PtxFlowGraph, FollowsIndexedBranchesToAllTheirTargets) {
  const auto graph =
      graph_of("t: .branchtargets $a, $b;\nbrx.idx %r1, t;\n$a: membar.gl;\n$b: ret;");
  EXPECT_THAT(graph[0].next, ElementsAre(1, 2));
  EXPECT_EQ(graph[0].join, 2);
}

// The slow reference: a block's join is the nearest block on every path to the exit.
std::set<int> reachable(const std::vector<BasicBlock>& graph, int from, int without) {
  std::set<int> seen;
  std::vector<int> todo;
  if (from != without) todo.push_back(from);
  while (!todo.empty()) {
    const int block = todo.back();
    todo.pop_back();
    if (!seen.insert(block).second) continue;
    for (const int next : graph[static_cast<size_t>(block)].next) {
      if (next != without) todo.push_back(next);
    }
  }
  return seen;
}

int slow_join(const std::vector<BasicBlock>& graph, int block) {
  const int exit = static_cast<int>(graph.size()) - 1;
  std::vector<int> all;
  for (int other = 0; other <= exit; ++other) {
    bool is_passed = other != block;
    for (const int next : graph[static_cast<size_t>(block)].next) {
      is_passed &= !reachable(graph, next, other).contains(exit);
    }
    if (is_passed) all.push_back(other);
  }
  // The nearest one comes before all others on the way.
  for (const int one : all) {
    const auto before = [&](int other) {
      return other == one || !reachable(graph, other, -1).contains(one) ||
             reachable(graph, one, -1).contains(other);
    };
    bool is_nearest = true;
    for (const int other : all) {
      is_nearest &=
          before(other) && (other == one || !reachable(graph, block, one).contains(other));
    }
    if (is_nearest) return one;
  }
  return -1;
}

TEST(PtxFlowGraph, FindsTheJoinsThatASearchOfAllWaysFinds) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const size_t labels = 3 + random() % 8;
    std::string body;
    for (size_t k = 0; k < labels; ++k) {
      body += "$l" + std::to_string(k) + ": membar.gl;\n";
      if (random() % 3 > 0) body += "@%p1 bra $l" + std::to_string(random() % labels) + ";\n";
    }
    const auto graph = graph_of(body + "ret;");
    for (size_t block = 0; block + 1 < graph.size(); ++block) {
      EXPECT_EQ(graph[block].join, slow_join(graph, static_cast<int>(block))) << body << block;
    }
  }
}

TEST(PtxFlowGraph, KnowsWhatInstructionsReadAndWrite) {
  struct Case {
    const char* instruction;
    std::vector<std::string> reads, writes;
  };
  const Case cases[] = {
      {"add.s32 %r1, %r2, %r3;", {"%r2", "%r3"}, {"%r1"}},
      {"st.global.u32 [%r1], %r2;", {"%r1", "%r2"}, {}},
      {"ld.global.v2.u32 {%r1, %r2}, [%r3+4];", {"%r3"}, {"%r1", "%r2"}},
      {"@%p1 mov.b32 %r1, 5;", {"%p1"}, {"%r1"}},
      {"shfl.sync.up.b32 %r1|%p1, %r2, 1, 0, -1;", {"%r2"}, {"%p1", "%r1"}},
      {"bar.red.and.pred %p1, 0, %p2;", {"%p2"}, {"%p1"}},
      {"bar.sync %r1;", {"%r1"}, {}},
      {"red.global.add.u32 [%r1], %r2;", {"%r1", "%r2"}, {}},
  };
  for (const Case& one : cases) {
    const Function function = function_of(one.instruction);
    const RegisterUse use = register_use(function.instructions.at(0));
    const auto names = [&](const std::vector<int>& ids) {
      std::vector<std::string> all;
      for (const int id : ids) all.push_back(function.registers[static_cast<size_t>(id)].name);
      std::sort(all.begin(), all.end());
      return all;
    };
    EXPECT_EQ(names(use.reads), one.reads) << one.instruction;
    EXPECT_EQ(names(use.writes), one.writes) << one.instruction;
  }
}

TEST(PtxLives, LastThroughTheLoopThatNeedsTheirValue) {
  const Function function = function_of(
      "mov.b32 %r1, 1;\nmov.b32 %r2, 2;\n$a: add.s32 %r3, %r1, 1;\nmembar.gl;\n@%p1 bra $a;\nret;");
  const auto lives = lives_of(function, flow_graph(function).value()).value();
  auto life = [&](const std::string& name) {
    for (size_t id = 0; id < function.registers.size(); ++id) {
      if (function.registers[id].name == name) return lives[id];
    }
    return Life{};
  };
  EXPECT_EQ(life("%r1").first, 0);
  EXPECT_EQ(life("%r1").last, 4);
  EXPECT_EQ(life("%r2").last, 1);
  EXPECT_EQ(life("%r3").first, 2);
  EXPECT_EQ(life("%r3").last, 2);
  EXPECT_EQ(life("%r1").writes, 1);
}

}  // namespace
}  // namespace mc::ptx
