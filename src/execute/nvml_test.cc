// SPDX-License-Identifier: Apache-2.0
#include "execute/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::execute {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Throttling, NamesWhatLowersTheClocks) {
  EXPECT_THAT(throttling_of(0x04 | 0x40), ElementsAre("hardware_thermal", "power_cap"));
}

TEST(Throttling, PassesOverIdlingAndSettings) {
  EXPECT_THAT(throttling_of(0x01 | 0x02), IsEmpty());
}

TEST(Nvml, IsAbsentOrKnowsItsDevice) {
  const auto nvml = Nvml::open();
  if (nvml == nullptr) GTEST_SKIP() << "no NVIDIA driver here";
  EXPECT_THAT(nvml->identity(), ::testing::StartsWith("GPU-"));
}

}  // namespace
}  // namespace mc::execute
