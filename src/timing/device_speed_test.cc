// SPDX-License-Identifier: Apache-2.0
#include "timing/device_speed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/file.h"
#include "timing/fakes/timed_fakes.h"

namespace mc::timing {
namespace {

const DeviceSpeed kSpeed{3000, 50, 700};

TEST(FloorOf, IsBytesOverBandwidth) {
  const task::Floor floor = floor_of(kSpeed, {6e6, 1e6, false});
  EXPECT_EQ(floor.bound, "memory");
  EXPECT_DOUBLE_EQ(floor.time_us, 2);
}

TEST(FloorOf, IsOperationsOverThePeakOfTheDtypeIfThatIsLarger) {
  const task::Floor single = floor_of(kSpeed, {6e6, 7e9, false});
  EXPECT_EQ(single.bound, "compute");
  EXPECT_DOUBLE_EQ(single.time_us, 140);
  const task::Floor half = floor_of(kSpeed, {6e6, 7e9, true});
  EXPECT_DOUBLE_EQ(half.time_us, 10);
  EXPECT_EQ(half.peak_tflops, 700);
}

class FindDeviceSpeed : public testing::Test {
 protected:
  FindDeviceSpeed() { std::filesystem::remove(file_); }
  ~FindDeviceSpeed() override { std::filesystem::remove(file_); }

  int64_t num_measured() const { return fakes_.num_speeds; }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() / ("mc-speed-" + std::to_string(getpid()) + ".json");
  TimedFakes fakes_;
  execute::Judge judge_{fakes_.judges.session(), {}};
};

TEST_F(FindDeviceSpeed, MeasuresOnceAndStoresIt) {
  for (int i = 0; i < 3; ++i) {
    const auto speed = find_device_speed(file_, judge_, 20);
    ASSERT_TRUE(speed) << speed.error().message;
    EXPECT_EQ(speed->bandwidth_gbs, 3000);
    EXPECT_EQ(speed->fp32_tflops, 50);
    EXPECT_EQ(speed->half_tflops, 700);
  }
  EXPECT_EQ(num_measured(), 1);
}

TEST_F(FindDeviceSpeed, MeasuresAgainWhereTheStoredFileIsInvalid) {
  const std::string odd[] = {"", "null", "[]", R"({"bandwidth_gbs": 3000, "fp32_tflops": 50})",
                             R"({"bandwidth_gbs": 3000, "fp32_tflops": 50, "half_tflops": 0})"};
  int64_t expected = 0;
  for (const std::string& text : odd) {
    ASSERT_TRUE(write_file_atomically(file_, text));
    const auto speed = find_device_speed(file_, judge_, 20);
    ASSERT_TRUE(speed) << text;
    EXPECT_EQ(speed->half_tflops, 700);
    EXPECT_EQ(num_measured(), ++expected) << text;
  }
}

}  // namespace
}  // namespace mc::timing
