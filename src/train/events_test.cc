// SPDX-License-Identifier: Apache-2.0
#include "train/events.h"

#include <array>
#include <cstring>
#include <string>

#include <gmock/gmock.h>

namespace mc::train {
namespace {

TEST(Events, Crc32cIsThatOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AA);
}

// The bytes that TensorFlow's own writer gives; tests/learn/learn_test.py reads whole files.
TEST(Events, ARecordIsLengthMaskedCrcMessageAndMaskedCrc) {
  const std::array<Scalar, 1> scalars = {Scalar{"a", 1.0}};
  const std::string record = event_record(2.0, 3, scalars);
  const std::string message(
      "\x09\0\0\0\0\0\0\0\x40"            // wall_time = 2
      "\x10\x03"                          // Event.step = 3
      "\x2A\x0A\x0A\x08\x0A\x01\x61\x15"  // Event.summary { value { tag = "a", simple_value =
      "\0\0\x80\x3F",                     // 1 } }
      23);
  ASSERT_EQ(record.size(), 8 + 4 + message.size() + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x17\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, message.size()), message);
}

}  // namespace
}  // namespace mc::train
