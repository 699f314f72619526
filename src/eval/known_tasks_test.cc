// SPDX-License-Identifier: Apache-2.0
#include "eval/known_tasks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/file.h"

namespace mc::eval {
namespace {

TEST(KnownTasks, ReturnsWhatWasLearned) {
  KnownTasks tasks;
  EXPECT_EQ(tasks.find("one").text, "");
  tasks.learn("one", {"facts", {.inputs = 7}});
  tasks.learn("one", {"more facts", {.inputs = 8}});
  EXPECT_EQ(tasks.find("one").text, "more facts");
  EXPECT_EQ(tasks.find("one").memory.inputs, 8);
  EXPECT_EQ(tasks.find("other").text, "");
}

TEST(KnownTasks, KeepsItOnDiskForTheSameVersions) {
  const auto folder = TemporaryDirectory::create("mc-known").value();
  KnownTasks(folder.path() / "tasks", "2.11").learn("one", {"facts", {1, 2, 3, 4}});
  KnownTasks again(folder.path() / "tasks", "2.11");
  EXPECT_EQ(again.take_turn("one"), nullptr) << "the task is known";
  EXPECT_EQ(again.find("one").text, "facts");
  EXPECT_EQ(again.find("one").memory.work, 4);
  EXPECT_EQ(again.find("other").text, "");
  EXPECT_EQ(KnownTasks(folder.path() / "tasks", "2.12").find("one").text, "");
}

TEST(KnownTasks, AnalysesATaskAgainWhereItsFileIsBroken) {
  const auto folder = TemporaryDirectory::create("mc-known").value();
  KnownTasks(folder.path()).learn("one", {"facts", {}});
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ASSERT_TRUE(write_file_atomically(entry.path(), "{\"known\": 3"));
  }
  EXPECT_EQ(KnownTasks(folder.path()).find("one").text, "");
}

TEST(KnownTasks, OneThreadAnalysesATaskAndTheOthersWait) {
  KnownTasks tasks;
  std::atomic<int> num_first = 0;
  std::atomic<int> num_told = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto turn = tasks.take_turn("one");
      if (turn == nullptr) {
        num_told += tasks.find("one").text == "facts" ? 1 : 0;
      } else if (++num_first > 1) {  // The first analysis fails.
        tasks.learn("one", {"facts", {}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_first, 2);
  EXPECT_EQ(num_told, 6);
}

TEST(KnownTasks, KeepsABoundedNumber) {
  KnownTasks tasks;
  for (size_t i = 0; i <= KnownTasks::kTasksMax; ++i) tasks.learn(std::to_string(i), {"facts", {}});
  EXPECT_EQ(tasks.find(std::to_string(KnownTasks::kTasksMax)).text, "facts");
  EXPECT_EQ(tasks.find("0").text, "");
}

}  // namespace
}  // namespace mc::eval
