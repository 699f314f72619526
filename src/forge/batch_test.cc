// SPDX-License-Identifier: Apache-2.0
#include "forge/batch.h"

#include <gtest/gtest.h>

namespace mc::forge {
namespace {

// A finding about a kernel of a unit, and the text that samples quote from it.
TEST(WithoutNamespaces, RestoresTheOriginalNameOfAKernel) {
  task::Verdict verdict;
  task::Crashed crashed;
  crashed.stage = "forward";
  crashed.findings.push_back({.kind = "out_of_bounds",
                              .kernel = "mc_forge_12::k(float const*, mc_forge_12::Pair)",
                              .detail = "thread of mc_forge_12::k; my_mc_forge_1::f"});
  verdict.outcome = crashed;
  const task::Outcome plain = without_namespaces(verdict);
  const auto& finding = std::get<task::Crashed>(plain).findings.at(0);
  EXPECT_EQ(finding.kernel, "k(float const*, Pair)");
  EXPECT_EQ(finding.detail, "thread of k; my_mc_forge_1::f");
}

}  // namespace
}  // namespace mc::forge
