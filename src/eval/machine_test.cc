// SPDX-License-Identifier: Apache-2.0
#include "eval/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using testing::ElementsAre;

TEST(BackendNamed, KnowsABackendByItsNameAndByItsDevicesArchitecture) {
  EXPECT_EQ(backend_named("cpu"), task::Backend::kCpu);
  EXPECT_EQ(backend_named("cuda"), task::Backend::kCuda);
  EXPECT_EQ(backend_named("90"), task::Backend::kCuda);
  EXPECT_EQ(backend_named("musa"), task::Backend::kMusa);
  EXPECT_EQ(backend_named("mp_31"), task::Backend::kMusa);
  for (const char* name : {"", "mp_99", "sm_90", "auto"}) {
    EXPECT_EQ(backend_named(name), std::nullopt) << name;
  }
}

TEST(BackendNames, AreThoseThatAnOptionTakes) {
  EXPECT_EQ(backend_names(), "auto, cuda, musa, cpu");
}

TEST(BestBackend, IsNotOneThatHasMetNoHardware) {
  EXPECT_FALSE(kMusaBackend.is_here(compile::PyTorch()));
}

TEST(ZygoteOptions, NameTheBackendToAllAndGiveCandidatesMore) {
  Machine machine;
  machine.backend = task::Backend::kCuda;
  machine.arguments = {"--executor-lib", "executor.so"};
  machine.candidates_arguments = {"--aten-lib", "aten.so"};
  EXPECT_THAT(zygote_options(machine, execute::Roles::kTrusted).arguments,
              ElementsAre("--device", "cuda", "--executor-lib", "executor.so"));
  EXPECT_THAT(
      zygote_options(machine, execute::Roles::kCandidates).arguments,
      ElementsAre("--device", "cuda", "--executor-lib", "executor.so", "--aten-lib", "aten.so"));
}

}  // namespace
}  // namespace mc::eval
