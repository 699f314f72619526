// SPDX-License-Identifier: Apache-2.0
#include "loop/rft.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "loop/structure.h"

namespace mc::loop {
namespace {

const std::string kKernel = R"(
#include <torch/extension.h>
__global__ void k(const float* x, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) o[i] = x[i] * expf(x[i]);  // The kernel uses one thread for each element.
})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

TEST(Structure, DoesNotDependOnNamesNumbersCommentsAndLayout) {
  std::string other = replaced(kKernel, "const float* x", "const float * input");
  other = replaced(replaced(other, "x[i]", "input[i]"), "  ", "\t\n");
  other = replaced(replaced(other, "// A thread an element.", ""), "void k(", "void mine(");
  EXPECT_EQ(normalised_tokens(other), normalised_tokens(kKernel));
  EXPECT_EQ(normalised_tokens("f(256)"), normalised_tokens("f(128)"));
}

TEST(Structure, DependsOnFunctionsOperatorsAndLoops) {
  const std::string tokens = normalised_tokens(kKernel);
  EXPECT_NE(normalised_tokens(replaced(kKernel, "expf", "logf")), tokens);
  EXPECT_NE(normalised_tokens(replaced(kKernel, "x[i] *", "x[i] +")), tokens);
  EXPECT_NE(normalised_tokens(replaced(kKernel, "if (i < n)", "for (; i < n; i += gridDim.x)")),
            tokens);
  EXPECT_NE(normalised_tokens(replaced(kKernel, "threadIdx.x", "threadIdx.y")), tokens);
}

TEST(Structure, DependsOnlyOnTheKernelsOfTheAnswer) {
  const std::string answer =
      "Here.\n```python\nsrc = r\"\"\"" + kKernel + "\"\"\"\nname = 'a'\n```";
  EXPECT_EQ(native_source(answer), kKernel);
  EXPECT_EQ(structure_of(replaced(answer, "name = 'a'", "other = 'b'")), structure_of(answer));
  EXPECT_EQ(native_source("no kernel"), "no kernel");
}

TEST(DrawTargets, DrawsRoundRobinOverClustersAndNoAnswerTwice) {
  std::vector<std::string> answers, structures;
  // Nine in ten answers have one structure, and half of these are duplicates.
  for (int i = 0; i < 20; ++i) {
    answers.push_back("answer " + std::to_string(i / 2));
    structures.push_back(i < 18 ? "common" : "rare");
  }
  const auto drawn = draw_targets(answers, structures, 4, 1);
  std::set<std::string> texts;
  std::map<std::string, int> counts;
  for (const size_t i : drawn) {
    texts.insert(answers[i]);
    ++counts[structures[i]];
  }
  EXPECT_EQ(texts.size(), 4u);
  EXPECT_EQ(counts, (std::map<std::string, int>{{"common", 3}, {"rare", 1}}));
  EXPECT_EQ(draw_targets(answers, structures, 4, 1), drawn);
  EXPECT_EQ(draw_targets(answers, structures, 100, 1).size(), 10u);
  EXPECT_TRUE(draw_targets({}, {}, 4, 1).empty());
}

TEST(NearestAnswer, IsTheOneThatChangesTheFewestLines) {
  const std::vector<std::string> passing = {"x\ny\nz\n", "a\nb\nc\nd\n", "a\nB\nc\n", "a\nB\nc\n"};
  EXPECT_EQ(nearest_answer("a\nb\nc\n", passing), 1u);
  EXPECT_EQ(nearest_answer("a\n?\nc\n", passing), 2u);
  EXPECT_EQ(nearest_answer("a\nb\nb\nc\nd\n", passing), 1u);
  EXPECT_EQ(nearest_answer("", passing), 0u);
}

TEST(EffectiveNumber, IsTheExponentialOfTheEntropy) {
  const std::vector<std::string> even = {"a", "b", "c", "d"};
  const std::vector<std::string> one = {"a", "a"};
  EXPECT_NEAR(effective_number(even), 4, 1e-12);
  EXPECT_NEAR(effective_number(one), 1, 1e-12);
  EXPECT_EQ(effective_number({}), 0);
}

}  // namespace
}  // namespace mc::loop
