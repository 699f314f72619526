// SPDX-License-Identifier: Apache-2.0
#include "forge/rewrites.h"

#include <gmock/gmock.h>

#include "core/file.h"

namespace mc::forge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Rewrites : public ::testing::Test {
 protected:
  void add(int64_t sample, double low, double high, const std::string& answer) {
    task::Performance performance;
    performance.time_us = {.median = (low + high) / 2, .low = low, .high = high};
    store::Judgement one{.key = {"a", sample, 0}, .reward = {}, .verdict = {}};
    one.verdict.outcome = task::Passed{{}, performance, 1};
    ASSERT_TRUE(folder_->run.add(store::Answer{.key = one.key, .completion = answer}));
    ASSERT_TRUE(folder_->run.add(one));
  }

  void SetUp() override {
    auto directory = TemporaryDirectory::create("rewrites");
    ASSERT_TRUE(directory);
    directory_.emplace(std::move(*directory));
    auto opened =
        store::open_run(directory_->path(), {.name = "t", .kind = "bench", .settings = "{}"});
    ASSERT_TRUE(opened);
    folder_.emplace(std::move(*opened));
    const std::vector<store::TaskRecord> tasks = {{"a", "", {"softmax"}, "class Model: pass"}};
    ASSERT_TRUE(folder_->run.set_tasks(tasks));
  }

  std::optional<TemporaryDirectory> directory_;
  std::optional<store::RunFolder> folder_;
};

TEST_F(Rewrites, PairTheSlowestAnswerWithTheFastest) {
  add(0, 90, 100, "slow");
  add(1, 40, 42, "fast");
  add(2, 60, 61, "middle");
  const auto rows = rewrites_of(folder_->run);
  ASSERT_TRUE(rows);
  ASSERT_THAT(*rows, ElementsAre(HasSubstr("\"before_us\":95.0,\"after_us\":41.0")));
  EXPECT_LT(rows->front().find("\"content\":\"slow\""), rows->front().find("\"content\":\"fast\""));
}

TEST_F(Rewrites, LeaveOutPairsWithoutAGain) {
  add(0, 40, 50, "one");
  add(1, 49, 52, "other");
  EXPECT_THAT(*rewrites_of(folder_->run), IsEmpty());
}

}  // namespace
}  // namespace mc::forge
