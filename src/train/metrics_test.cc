// SPDX-License-Identifier: Apache-2.0
#include "train/metrics.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::train {
namespace {

class Metrics : public testing::Test {
 protected:
  Metrics() : room_(std::move(TemporaryDirectory::create("metrics").value())) {}
  std::string text() const { return read_file(room_.path() / "metrics.jsonl", 1 << 20).value(); }

  TemporaryDirectory room_;
};

TEST_F(Metrics, AStepIsOneLine) {
  auto file = MetricsFile::open(room_.path(), 0);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->add({.step = 1,
                         .loss = 2.5,
                         .grad_norm = 3.5,
                         .lr = 0.25,
                         .tokens = 40,
                         .epoch = 2,
                         .elapsed_s = 1.5,
                         .tokens_per_s = 10.5}));
  const std::vector<Scalar> scalars = {{"reward", 0.5}, {"kl", 1.0}};
  ASSERT_TRUE(file->add(2, scalars));
  EXPECT_EQ(text(), R"({"step":1,"loss":2.5,"grad_norm":3.5,"lr":0.25,"tokens":40,"epoch":2,)"
                    R"("elapsed_s":1.5,"tokens_per_s":10.5})"
                    "\n"
                    R"({"step":2,"reward":0.5,"kl":1.0})"
                    "\n");
}

TEST_F(Metrics, LinesAfterTheLastStepAreRemoved) {
  const auto path = room_.path() / "metrics.jsonl";
  const std::string lines = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  ASSERT_TRUE(write_file_atomically(path, lines));
  for (const auto& [last, kept] :
       std::vector<std::pair<int64_t, size_t>>{{3, 33}, {2, 22}, {0, 0}}) {
    ASSERT_TRUE(MetricsFile::open(room_.path(), last));
    EXPECT_EQ(text(), lines.substr(0, kept)) << last;
  }
  // A killed run may leave a part of a line, which is removed with all that follows.
  ASSERT_TRUE(write_file_atomically(path, "{\"step\":1}\n{\"st\n{\"step\":2}\n"));
  ASSERT_TRUE(MetricsFile::open(room_.path(), 2));
  EXPECT_EQ(text(), "{\"step\":1}\n");
  EXPECT_FALSE(MetricsFile::open("/dev/null/none", 1));
}

}  // namespace
}  // namespace mc::train
