// SPDX-License-Identifier: Apache-2.0
#include "legality/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::legality {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Policy policy() {
  Policy policy;
  policy.kernels = {{"run.library_kernel", "a library's kernel"},
                    {"run.own_share", "too little"},
                    {"libtorch_cuda.so", "runtime"},
                    {"*FillFunctor*", "[memset]"},
                    0.25};
  return policy;
}

task::KernelTime kernel(const char* name, const char* owner) {
  task::KernelTime kernel;
  kernel.name = name;
  kernel.owner = owner;
  return kernel;
}

std::vector<std::string> rules_of(const std::vector<task::RuleFinding>& findings) {
  std::vector<std::string> rules;
  for (const task::RuleFinding& finding : findings) rules.push_back(finding.rule);
  return rules;
}

TEST(CheckKernels, PassesTheCandidatesOwnKernelsWithAnyName) {
  EXPECT_THAT(check_kernels(policy(), {kernel("_Z4gemmv", "candidate")}, 1), IsEmpty());
}

TEST(CheckKernels, PassesKernelsOfAllowedOperators) {
  const std::vector<task::KernelTime> kernels = {kernel("_Z4reluv", "candidate"),
                                                 kernel("_Z11FillFunctorv", "libtorch_cuda.so"),
                                                 kernel("[memset]", "runtime")};
  EXPECT_THAT(check_kernels(policy(), kernels, 0.9), IsEmpty());
}

TEST(CheckKernels, RejectsAnyOtherKernelOfALibrary) {
  const auto findings = check_kernels(policy(), {kernel("sm80_gemm", "libcublas.so")}, 0.9);
  ASSERT_THAT(rules_of(findings), ElementsAre("run.library_kernel"));
  EXPECT_THAT(findings[0].message, HasSubstr("sm80_gemm of libcublas.so"));
}

TEST(CheckKernels, RejectsAnotherLibrarysKernelWithAnAllowedName) {
  const auto findings = check_kernels(policy(), {kernel("_Z11FillFunctorv", "graph")}, 0.9);
  EXPECT_THAT(rules_of(findings), ElementsAre("run.library_kernel"));
}

TEST(CheckKernels, RejectsATooSmallShare) {
  const auto findings = check_kernels(policy(), {kernel("_Z5decoyv", "candidate")}, 0.01);
  EXPECT_THAT(rules_of(findings), ElementsAre("run.own_share"));
}

}  // namespace
}  // namespace mc::legality
