// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <gmock/gmock.h>

namespace mc {
namespace {

TEST(Log, WritesNothingUntilItIsEnabledAndThenTheMessageAsItIs) {
  testing::internal::CaptureStderr();
  log_debug("before");
  EXPECT_FALSE(is_log_enabled());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  enable_log();
  EXPECT_TRUE(is_log_enabled());
  log_debug("{} is no place for a value");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("] {} is no place for a value\n"));
}

}  // namespace
}  // namespace mc
