// SPDX-License-Identifier: Apache-2.0
#include "task/musa_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::task {
namespace {

using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Pair;

TEST(MusaDevice, HasWarpsOf128ThreadsOnTheOldArchitectures) {
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_21"), 128);
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_22"), 128);
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_31"), 32);
  EXPECT_EQ(warp_threads(Dialect::kCuda, "mp_22"), 32);
}

TEST(MusaDevice, HasTheCapabilityThatItsArchitectureIsNamedBy) {
  EXPECT_THAT(described(Dialect::kMusa, "mp_31"),
              IsSupersetOf({Pair("major", 3), Pair("minor", 1)}));
  EXPECT_THAT(described(Dialect::kMusa, "mp_22"),
              IsSupersetOf({Pair("major", 2), Pair("minor", 2)}));
  EXPECT_THAT(described(Dialect::kCuda, "mp_22"), IsEmpty());
  EXPECT_EQ(architecture_number("mp_22"), 220);
}

TEST(MusaDevice, IsAnMttS4000OnMp22) {
  EXPECT_THAT(described(Dialect::kMusa, "mp_22"),
              IsSupersetOf({Pair("shared_memory_per_block", 72 << 10),
                            Pair("max_threads_per_multi_processor", 6144),
                            Pair("multi_processor_count", 56)}));
}

}  // namespace
}  // namespace mc::task
