// SPDX-License-Identifier: Apache-2.0
#include "sandbox/features.h"

#include <gtest/gtest.h>

#include "sandbox/protection.h"
#include "sandbox/testing/test_child.h"

namespace mc::sandbox {
namespace {

TEST(Features, HaveAReasonAndARemedyForEachMissingOne) {
  const auto features = probe();
  ASSERT_EQ(features.size(), kAllProtections.size());
  for (const Feature& feature : features) {
    EXPECT_TRUE(protection_named(feature.name).has_value()) << feature.name;
    EXPECT_EQ(feature.is_available, feature.why_not.empty()) << feature.name;
    EXPECT_EQ(feature.is_available, feature.remedy.empty()) << feature.name;
  }
}

TEST(Features, AgreeWithEntering) {
  bool has_all = true;
  for (const Feature& f : probe()) has_all = has_all && (f.is_available || !f.is_needed);
  EXPECT_EQ(ending_inside(Profile{}, [] { return 0; }) == "exit code 0", has_all);
}

TEST(Features, AreNeededUnlessTheDefaultProfileMakesThemOptional) {
  for (const Feature& feature : probe()) {
    EXPECT_EQ(feature.is_needed, feature.name != "process_limit") << feature.name;
  }
}

}  // namespace
}  // namespace mc::sandbox
