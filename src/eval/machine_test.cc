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

TEST(BestBackend, IsNotABackendThatWasNeverRunOnHardware) {
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

class ChosenDevices : public testing::Test {
 protected:
  static execute::CudaDevice gpu(const std::string& name, const std::string& uuid) {
    return {.name = name, .uuid = uuid, .major = 9};
  }
  // The ids of the chosen devices, or the error.
  std::string choose(const std::string& names) const {
    const auto chosen = chosen_devices(names, shown_);
    if (!chosen) return chosen.error().message;
    std::string ids;
    for (const execute::CudaDevice& one : *chosen) ids += one.uuid + " ";
    return ids;
  }
  std::vector<execute::CudaDevice> shown_ = {gpu("H100", "GPU-aa1"), gpu("A100", "GPU-bb2"),
                                             gpu("H100", "GPU-aa3")};
};

TEST_F(ChosenDevices, AreAllThatAreLikeTheFirstOne) {
  EXPECT_EQ(choose("all"), "GPU-aa1 GPU-aa3 ");
}

TEST_F(ChosenDevices, AreNamedByNumberAndByTheBeginningOfAnId) {
  EXPECT_EQ(choose("2"), "GPU-aa3 ");
  EXPECT_EQ(choose("GPU-bb"), "GPU-bb2 ");
  EXPECT_EQ(choose("2,GPU-aa1,2"), "GPU-aa3 GPU-aa1 ");
}

TEST_F(ChosenDevices, AreRefusedWithTheNamesOfThoseThatThereAre) {
  for (const char* wrong : {"3", "GPU-aa", "GPU-c", "", "0,,2", "-1", "99999999999999999999"}) {
    EXPECT_THAT(choose(wrong), testing::HasSubstr("there are 0 (GPU-aa1, H100), 1 (GPU-bb2, A100)"))
        << wrong;
  }
  EXPECT_THAT(choose("0,1"), testing::HasSubstr("A100 is not like H100"));
}

}  // namespace
}  // namespace mc::eval
