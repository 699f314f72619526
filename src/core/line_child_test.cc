// SPDX-License-Identifier: Apache-2.0
#include "core/line_child.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace mc {
namespace {

using AtEnd = LineChild::AtEnd;

TEST(LineChild, ExchangesLinesOfAnyLength) {
  auto cat = LineChild::start({"cat"}, AtEnd::kWait);
  ASSERT_TRUE(cat);
  EXPECT_EQ((*cat)->call("one").value(), "one");
  EXPECT_EQ((*cat)->call("").value(), "");
  const std::string large(300'000, 'x');
  std::jthread writer([&] { ASSERT_TRUE((*cat)->send(large + "\nnext\n")); });
  EXPECT_EQ((*cat)->receive().value(), large);
  EXPECT_EQ((*cat)->receive().value(), "next");
}

TEST(LineChild, ReportsAChildThatEnded) {
  auto ends = LineChild::start({"false"}, AtEnd::kWait);
  ASSERT_TRUE(ends);
  EXPECT_EQ((*ends)->receive().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(LineChild::start({"/no/such/program"}, AtEnd::kWait).error().code,
            ErrorCode::kInvalidInput);
}

TEST(LineChild, IsTerminatedWhereItDoesNotReadItsInput) {
  auto sleeps = LineChild::start({"sleep", "1000"}, AtEnd::kTerminate);
  ASSERT_TRUE(sleeps);
  std::jthread hangs_up([&] { (*sleeps)->hang_up(); });
  EXPECT_FALSE((*sleeps)->receive());
}

}  // namespace
}  // namespace mc
