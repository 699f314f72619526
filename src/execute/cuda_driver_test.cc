// SPDX-License-Identifier: Apache-2.0
#include "execute/cuda_driver.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::execute {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Result<CudaDriver> ask_one_that(const char* behaviour,
                                std::chrono::milliseconds time_max = kCudaDriverTimeMax) {
  ::setenv("MC_FAKE_CUDA", behaviour, 1);
  return query_cuda_driver(MC_FAKE_CUDA_DRIVER, time_max);
}

TEST(CudaDriver, ReportsItsVersionAndDevices) {
  const auto driver = ask_one_that("works");
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_EQ(driver->cuda_major, 13);
  EXPECT_EQ(driver->cuda_minor, 0);
  const std::string uuid = "GPU-00010203-0405-0607-0809-0a0b0c0d0ef";
  CudaDevice first{"Fake GPU 0",       uuid + "0",        9,      0, int64_t{80} << 30, 132,
                   int64_t{227} << 10, int64_t{50} << 20, 3352.32};
  CudaDevice second = first;
  second.name = "Fake GPU 1";
  second.uuid = uuid + "1";
  second.major = 10;
  EXPECT_THAT(driver->devices, ElementsAre(first, second));
}

TEST(CudaDriver, IsNotFoundWithoutItsLibraryOrADevice) {
  const auto nowhere = query_cuda_driver("libno_such_driver.so.1");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(nowhere.error().message, HasSubstr("libno_such_driver.so.1"));
  const auto empty = ask_one_that("shows none");
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::kNotFound);
}

TEST(CudaDriver, ReturnsTheDriversOwnMessage) {
  const auto driver = ask_one_that("does not fit");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(driver.error().message, HasSubstr("803: system has unsupported display driver"));
}

TEST(CudaDriver, UsesTheFunctionNamesOfThePlatform) {
  ::setenv("MC_FAKE_CUDA", "works", 1);
  const auto driver = query_cuda_driver(MC_FAKE_CUDA_DRIVER, kCudaDriverTimeMax, "mu");
  ASSERT_FALSE(driver);
  EXPECT_THAT(driver.error().message, HasSubstr("muInit"));
}

TEST(CudaDriver, TimesOutWhereTheDriverHangs) {
  const auto driver = ask_one_that("hangs", std::chrono::milliseconds(50));
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kTimeout);
}

TEST(CudaDriver, ReturnsAnErrorWhereTheDriverCrashes) {
  const auto driver = ask_one_that("crashes");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(driver.error().message, HasSubstr("crashes"));
}

TEST(CudaDriver, IsNotLoadedIntoThisProcess) {
  ASSERT_TRUE(ask_one_that("works"));
  const auto maps = read_file("/proc/self/maps", 1 << 20);
  ASSERT_TRUE(maps);
  EXPECT_THAT(*maps, Not(HasSubstr("fake_cuda_driver")));
}

}  // namespace
}  // namespace mc::execute
