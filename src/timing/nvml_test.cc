// SPDX-License-Identifier: Apache-2.0
#include "timing/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execute/cuda_driver.h"

namespace mc::timing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Throttling, NamesWhatLowersTheClocks) {
  EXPECT_THAT(throttling_of(0x04 | 0x40), ElementsAre("hardware_thermal", "power_cap"));
}

TEST(Throttling, IgnoresIdlingAndSettings) { EXPECT_THAT(throttling_of(0x01 | 0x02), IsEmpty()); }

TEST(Nvml, IsAbsentOrKnowsItsDevice) {
  const auto driver = execute::query_cuda_driver();
  if (!driver) GTEST_SKIP() << driver.error().message;
  const auto nvml = Nvml::open(driver->devices[0].uuid);
  ASSERT_NE(nvml, nullptr);
  EXPECT_THAT(nvml->driver_version(), ::testing::ContainsRegex("^[0-9]+[.]"));
  EXPECT_EQ(Nvml::open("GPU-of-nobody"), nullptr);
}

}  // namespace
}  // namespace mc::timing
