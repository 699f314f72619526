// SPDX-License-Identifier: Apache-2.0
#include "eval/recording.h"

#include <gmock/gmock.h>

#include <string>

namespace mc::eval {
namespace {

using testing::HasSubstr;

Recording recording() {
  Recording made;
  made.verdict.task = "reduction/row_sum";
  made.verdict.candidate = "answer.py";
  made.verdict.seed = 7;
  made.verdict.outcome = task::TimedOut{"forward", 30};
  made.device = "a device";
  made.data = std::string("\0\n\xFF data", 8);
  return made;
}

TEST(Recording, IsReadAsItWasWritten) {
  const std::string bytes = to_bytes(recording());
  const auto again = recording_from_bytes(bytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->verdict.seed, 7U);
  EXPECT_EQ(again->device, "a device");
  EXPECT_EQ(again->data, recording().data);
  EXPECT_EQ(to_bytes(*again), bytes);
}

TEST(Recording, IsRefusedWhereAnyByteWasChanged) {
  const std::string bytes = to_bytes(recording());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    const auto read = recording_from_bytes(changed);
    ASSERT_FALSE(read) << "byte " << i;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(read.error().message, HasSubstr("no recording"));
  }
}

TEST(Recording, IsRefusedWhereItIsCutShort) {
  const std::string bytes = to_bytes(recording());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(recording_from_bytes(bytes.substr(0, size))) << size;
  }
}

TEST(Recording, IsRejectedWhereItsHeaderIsMalformed) {
  for (const char* content : {"", "\n", "{}\n", "[]\n", "{\"verdict\":1,\"device\":\"\"}\n", "{"}) {
    EXPECT_FALSE(recording_from_bytes(with_hash(content))) << content;
  }
}

}  // namespace
}  // namespace mc::eval
