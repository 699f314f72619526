// SPDX-License-Identifier: Apache-2.0
#include "reward/profile_text.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::reward {
namespace {

using task::KernelTime;
using task::Performance;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::string profile_of(const Performance& performance) {
  Page page(2000);
  write_profile(page, performance);
  return page.text();
}

KernelTime kernel_of(const std::string& name, double share, double launches = 1) {
  KernelTime out;
  out.name = name;
  out.owner = "candidate";
  out.launches = launches;
  out.time_us = 100 * share;
  out.share = share;
  out.grid = {512, 1, 1};
  out.block = {64, 1, 1};
  out.registers = 32;
  out.occupancy = 1;
  return out;
}

// A call of 100 us in one kernel of 90 us without faults, far from a roofline of 30 us.
Performance sound() {
  Performance out;
  out.speedup_eager = {1.5, 1.25, 1.75};
  out.time_us = {100, 99, 101};
  out.time_eager_us = {150, 149, 151};
  out.timing.mode = "enqueued";
  out.own_share = 1;
  out.kernels = {kernel_of("k", 0.9)};
  out.floor = {30, "memory", 30'000'000, 4e6, 1000, 50};
  return out;
}

std::string profile_with(const std::vector<KernelTime>& kernels) {
  Performance performance = sound();
  performance.kernels = kernels;
  return profile_of(performance);
}

// ---- Time ---------------------------------------------------------------------------------------

TEST(ProfileText, ComparesWithTorchCompileWhereThatWasTimed) {
  Performance performance = sound();
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("torch.compile")));
  performance.speedup_compile = {{0.5, 0.25, 0.75}};
  performance.time_compile_us = {{50, 49, 51}};
  EXPECT_THAT(profile_of(performance),
              HasSubstr("It is 0.50 times as fast as torch.compile (0.25 to 0.75), which takes "
                        "50.0 us.\n"));
}

TEST(ProfileText, SaysThatForwardWaitsForTheDevice) {
  Performance performance = sound();
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("Hint: forward waits for the device")));
  performance.timing.mode = "host_synchronous";
  EXPECT_THAT(profile_of(performance), HasSubstr("Hint: forward waits for the device"));
}

TEST(ProfileText, ShowsThreeDigits) {
  const std::pair<double, const char*> kTable[] = {
      {0.25, "takes 0.25 us"}, {2.5, "takes 2.50 us"},    {25.25, "takes 25.2 us"},
      {250, "takes 250 us"},   {25000, "takes 25000 us"}, {std::nan(""), "takes nan us"},
  };
  for (const auto& [time_us, text] : kTable) {
    Performance performance = sound();
    performance.time_us.median = time_us;
    EXPECT_THAT(profile_of(performance), HasSubstr(text));
  }
}

// ---- Floor --------------------------------------------------------------------------------------

TEST(ProfileText, NamesTheBoundOfTheCallAndTheDistanceFromIt) {
  EXPECT_THAT(profile_of(sound()),
              HasSubstr("Bound by memory: the floor on this device is 30.0 us; the call runs at "
                        "30 % of its speed.\n"
                        "It moves 30.0 MB of inputs and outputs at 300 of 1000 GB/s and does the "
                        "reference's 4.00 MFLOP at 0.04 of 50.0 TFLOP/s.\n"));
}

TEST(ProfileText, HintsAtTheBoundAccordingToTheDistanceFromIt) {
  const struct {
    double floor_us;
    const char* bound;
    const char* hint;
  } kTable[] = {
      {30, "memory", "Hint: read and write each element once"},
      {30, "compute", "Hint: let each value that is loaded serve many operations"},
      {95, "memory", "Hint: it is close to the floor"},
      {120, "compute", "Hint: it is close to the floor"},
  };
  for (const auto& row : kTable) {
    Performance performance = sound();
    performance.floor.time_us = row.floor_us;
    performance.floor.bound = row.bound;
    EXPECT_THAT(profile_of(performance), HasSubstr(row.hint)) << row.floor_us;
  }
  Performance performance = sound();
  performance.floor.time_us = 75;
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("Hint")));
}

TEST(ProfileText, HintsAtAGridThatLeavesTheDeviceIdle) {
  Performance performance = sound();
  performance.kernels[0].grid = {3, 3, 1};
  EXPECT_THAT(profile_of(performance),
              HasSubstr("k has only 9 blocks, so that most of the device"));
  performance.floor.time_us = 95;
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("blocks, so that")));
}

TEST(ProfileText, LeavesOutAFloorThatIsNotKnown) {
  Performance performance = sound();
  performance.floor = {};
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("floor")));
}

TEST(ProfileText, LeavesOutArithmeticThatTheReferenceLacks) {
  Performance performance = sound();
  performance.floor.operations = 0;
  EXPECT_THAT(profile_of(performance),
              HasSubstr("It moves 30.0 MB of inputs and outputs at 300 of 1000 GB/s.\n"));
}

// ---- Kernels ------------------------------------------------------------------------------------

TEST(ProfileText, NamesAKernelWithoutItsArguments) {
  const struct {
    const char* mangled;
    const char* shown;
  } kTable[] = {
      {"plain_c", "plain_c"},
      {"_Z7row_sumPKfPfi", "row_sum"},
      {"_ZL7row_sumPKfPfi", "row_sum"},
      {"_Z7row_sumIfLi4EEvPKT_PS0_i", "\"row_sum<float, 4>\""},
      {"_ZN2ns5inner7row_sumEPf", "ns::inner::row_sum"},
      {"_ZN2nsL7row_sumEPf", "ns::row_sum"},
      {"_ZN12_GLOBAL__N_17row_sumEPf", "\"(anonymous namespace)::row_sum\""},
      {"_Z", "_Z"},
      {"_Z9", "_Z9"},
      {"_Z9short", "_Z9short"},
      {"_Z0Pf", "_Z0Pf"},
      {"_Z99999999999999999999k", "_Z99999999999999999999k"},
      {"_Z7a b\nc\"dPf", "\"a b c'd\""},
      {"", "\"\""},
  };
  for (const auto& row : kTable) {
    EXPECT_THAT(profile_with({kernel_of(row.mangled, 0.9)}),
                HasSubstr("Kernel " + std::string(row.shown) + ": 90.0 us a call"));
  }
}

TEST(ProfileText, BoundsALongDemangledName) {
  std::string name = "_Z1k" + std::string(40, 'M') + "1AS_";
  for (char c = '0'; c <= '9'; ++c) name += std::string("S") + c + '_';
  for (char c = 'A'; c <= 'Z'; ++c) name += std::string("S") + c + '_';
  EXPECT_THAT(profile_with({kernel_of(name, 0.9)}), HasSubstr("Kernel k: 90.0 us"));
  EXPECT_THAT(profile_with({kernel_of(std::string(500, 'x'), 0.9)}),
              HasSubstr("Kernel " + std::string(77, 'x') + "...: 90.0 us"));
}

TEST(ProfileText, ShowsTheLongestKernelsAndCountsTheRest) {
  std::vector<KernelTime> kernels;
  for (int i = 0; i < 6; ++i) kernels.push_back(kernel_of("k" + std::to_string(i), 0.15));
  const std::string text = profile_with(kernels);
  EXPECT_THAT(text, HasSubstr("Kernel k3: "));
  EXPECT_THAT(text, Not(HasSubstr("Kernel k4: ")));
  EXPECT_THAT(text, HasSubstr("... and 2 more kernels.\n"));
}

TEST(ProfileText, ShowsTheResourcesOfAKernel) {
  KernelTime kernel = kernel_of("k", 0.9, 2.5);
  kernel.grid = {8, 1, 2};
  kernel.block = {16, 16, 1};
  kernel.spill_bytes = 48;
  kernel.shared_bytes = 4096;
  kernel.occupancy = 0.75;
  EXPECT_THAT(profile_with({kernel}),
              HasSubstr("Kernel k: 90.0 us a call (90 %) in 2.5 launches, grid 8x1x2, block 16x16; "
                        "32 registers, 48 bytes spilled, 4096 bytes of shared memory, occupancy "
                        "75 %.\n"));
}

// Each hint, just above and just below its threshold.
TEST(ProfileText, HintsAtLaunchesOnlyWhereManyAreShort) {
  constexpr const char* kHint = "a call are shorter than 5 us, so that";
  EXPECT_THAT(profile_with({kernel_of("k", 0.15, 4)}), HasSubstr(kHint));
  EXPECT_THAT(profile_with({kernel_of("k", 0.14, 3)}), Not(HasSubstr(kHint)));  // Few.
  EXPECT_THAT(profile_with({kernel_of("k", 0.2, 4)}), Not(HasSubstr(kHint)));   // 5 us each.
  // Their share of the time is too small.
  EXPECT_THAT(profile_with({kernel_of("k", 0.05, 40)}), Not(HasSubstr(kHint)));
  EXPECT_THAT(profile_with({kernel_of("a", 0.09, 2), kernel_of("b", 0.09, 2)}), HasSubstr(kHint));
}

TEST(ProfileText, HintsAtSpillsOfOwnKernelsThatMatter) {
  constexpr const char* kHint = "Hint: k spills registers to memory";
  KernelTime kernel = kernel_of("k", 0.1);
  EXPECT_THAT(profile_with({kernel}), Not(HasSubstr(kHint)));
  kernel.spill_bytes = 8;
  EXPECT_THAT(profile_with({kernel}), HasSubstr(kHint));
  kernel.share = 0.09;
  EXPECT_THAT(profile_with({kernel}), Not(HasSubstr(kHint)));
  kernel.share = 0.1;
  kernel.owner = "libtorch_cuda.so";
  EXPECT_THAT(profile_with({kernel}), Not(HasSubstr(kHint)));
}

TEST(ProfileText, HintsAtLowOccupancyUnlessTheFloorIsNear) {
  constexpr const char* kHint = "Hint: few warps of k fit";
  Performance performance = sound();
  performance.kernels[0].occupancy = 0.4;
  EXPECT_THAT(profile_of(performance), Not(HasSubstr(kHint)));
  performance.kernels[0].occupancy = 0.375;
  EXPECT_THAT(profile_of(performance), HasSubstr(kHint));
  performance.floor.time_us = 60;
  EXPECT_THAT(profile_of(performance), Not(HasSubstr(kHint)));
}

TEST(ProfileText, NamesTheOwnersOfTheOtherKernels) {
  Performance performance = sound();
  performance.kernels.push_back(kernel_of("gemm", 0.06));
  performance.kernels[1].owner = "libcublas.so.13";
  performance.own_share = 0.95;
  EXPECT_THAT(profile_of(performance), Not(HasSubstr("Its own kernels")));
  performance.own_share = 0.94;
  EXPECT_THAT(profile_of(performance), HasSubstr("Its own kernels take 94 % of the device time, "
                                                 "others (libcublas.so.13) the rest.\n"));
}

TEST(ProfileText, LeavesOutKernelsWhereNoneWasTraced) {
  Performance performance = sound();
  performance.kernels.clear();
  performance.own_share = 0;
  EXPECT_THAT(profile_of(performance), Not(AnyOf(HasSubstr("Kernel "), HasSubstr("own kernels"))));
}

}  // namespace
}  // namespace mc::reward
