// SPDX-License-Identifier: Apache-2.0
#include "core/cancel.h"

#include <thread>

#include <gtest/gtest.h>

namespace mc {
namespace {

TEST(CancelScope, IsInForceForItsThreadUntilItIsDestroyed) {
  EXPECT_FALSE(is_cancelled());
  std::stop_source outer, inner;
  const CancelScope scope(outer.get_token());
  {
    const CancelScope nested(inner.get_token());
    inner.request_stop();
    EXPECT_TRUE(is_cancelled());
    std::jthread([] { EXPECT_FALSE(is_cancelled()); });
    std::jthread([stop = this_cancellation()] {
      const CancelScope handed_on(stop);
      EXPECT_TRUE(is_cancelled());
    });
  }
  EXPECT_FALSE(is_cancelled());
  outer.request_stop();
  EXPECT_TRUE(is_cancelled());
}

}  // namespace
}  // namespace mc
