// SPDX-License-Identifier: Apache-2.0
#include "sandbox/features.h"

#include <gtest/gtest.h>

#include "sandbox/protection.h"
#include "sandbox/test_child.h"

namespace mc::sandbox {
namespace {

TEST(Features, SayWhyAndHowForEachThatIsMissing) {
  const auto features = probe();
  ASSERT_EQ(features.size(), kAllProtections.size());
  for (const Feature& feature : features) {
    EXPECT_TRUE(protection_named(feature.name).has_value()) << feature.name;
    EXPECT_EQ(feature.is_available, feature.why_not.empty()) << feature.name;
    EXPECT_EQ(feature.is_available, feature.remedy.empty()) << feature.name;
  }
}

TEST(Features, AgreeWithEntering) {
  bool all_available = true;
  for (const Feature& feature : probe()) all_available = all_available && feature.is_available;
  EXPECT_EQ(ending_inside(Profile{}, [] { return 0; }) == "exit code 0", all_available);
}

}  // namespace
}  // namespace mc::sandbox
