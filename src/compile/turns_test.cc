// SPDX-License-Identifier: Apache-2.0
#include "compile/turns.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace mc::compile {
namespace {

TEST(Turns, AreTakenByOneForEachName) {
  Turns turns;
  const Turns::Turn one = turns.take("one");
  EXPECT_NE(one, nullptr);
  EXPECT_NE(turns.take("two"), nullptr);
}

TEST(Turns, MayBeTakenAgainWhenTheyEnded) {
  Turns turns;
  turns.take("one").reset();
  EXPECT_NE(turns.take("one"), nullptr);
}

// Many threads want what the first makes: nobody goes on before it is there.
TEST(Turns, LetTheOthersWait) {
  Turns turns;
  std::atomic<bool> is_made = false;
  std::atomic<int> early = 0;
  Turns::Turn first = turns.take("it");
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const Turns::Turn turn = turns.take("it");
      if (!is_made) ++early;
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  is_made = true;
  first.reset();
  threads.clear();
  EXPECT_EQ(early, 0);
}

}  // namespace
}  // namespace mc::compile
