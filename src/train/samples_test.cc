// SPDX-License-Identifier: Apache-2.0
#include "train/samples.h"

#include <span>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "core/file.h"
#include "model/testing/small_model.h"

namespace mc::train {
namespace {

using testing::HasSubstr;

class SamplesOf : public testing::Test {
 protected:
  SamplesOf() : room_(std::move(TemporaryDirectory::create("samples").value())) {}

  Result<Samples> read(const std::string& text, int64_t length_max = 1000) {
    const auto path = room_.path() / "data.jsonl";
    EXPECT_TRUE(write_file_atomically(path, text));
    return read_samples(path, model_, length_max);
  }
  std::string fault_of(const std::string& text) {
    const auto samples = read(text);
    EXPECT_FALSE(samples);
    return samples ? "" : samples.error().message;
  }

  TemporaryDirectory room_;
  const model::Model model_ = model::small_model();
};

constexpr const char* kLine =
    R"({"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]})";

TEST_F(SamplesOf, TheAnswerBeginsAfterThePrompt) {
  const auto samples = read(std::string(kLine) + "\n\n" + kLine);
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->kept.size(), 2U);  // An empty line is no conversation.
  const Sample& sample = samples->kept[1];
  const std::span<const int32_t> tokens = sample.tokens;
  const auto answer = static_cast<size_t>(sample.answer);
  EXPECT_EQ(model_.tokenizer.decode(tokens.first(answer)),
            "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n");
  // The line break after the end token is no part of the answer.
  EXPECT_EQ(model_.tokenizer.decode(tokens.subspan(answer)), "2<|im_end|>");
}

TEST_F(SamplesOf, ConversationsThatAreTooLongAreCounted) {
  const auto whole = read(kLine);
  ASSERT_TRUE(whole);
  const auto length = static_cast<int64_t>(whole->kept[0].tokens.size());
  const std::string longer = R"({"messages": [{"role": "user", "content": "1+11?"}, )"
                             R"({"role": "assistant", "content": "2"}]})";
  const auto samples = read(std::string(kLine) + "\n" + longer, length);
  ASSERT_TRUE(samples);
  EXPECT_EQ(samples->kept.size(), 1U);
  EXPECT_EQ(samples->too_long, 1);
  const auto none = read(longer, length);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message,
              HasSubstr("holds no conversation of at most " + std::to_string(length) + " tokens"));
}

TEST_F(SamplesOf, AFaultNamesItsLine) {
  EXPECT_THAT(fault_of(std::string(kLine) + "\n[]"), HasSubstr("line 2: not a JSON object"));
  EXPECT_THAT(fault_of("{"), HasSubstr("line 1: not a JSON object"));
  for (const char* text : {"{}", R"({"messages": 1})", R"({"messages": []})"}) {
    EXPECT_THAT(fault_of(text), HasSubstr("\"messages\" is missing"));
  }
  for (const char* text :
       {R"({"messages": [1]})", R"({"messages": [{"role": "user"}]})",
        R"({"messages": [{"content": "a"}]})", R"({"messages": [{"role": 1, "content": "a"}]})"}) {
    EXPECT_THAT(fault_of(text), HasSubstr("a message's \"role\" or \"content\""));
  }
  EXPECT_THAT(fault_of(R"({"messages": [{"role": "user", "content": "a"}]})"),
              HasSubstr("the last message is not the assistant's"));
  EXPECT_EQ(read_samples("/dev/null/none", model_, 9).error().code, ErrorCode::kNotFound);
}

TEST_F(SamplesOf, AnAnswerNeedsAnEndToken) {
  model::Config config = model::small_config();
  config.ends = {7};
  const model::Model other = model::small_model(config);
  const auto path = room_.path() / "data.jsonl";
  ASSERT_TRUE(write_file_atomically(path, kLine));
  const auto samples = read_samples(path, other, 1000);
  ASSERT_FALSE(samples);
  EXPECT_THAT(samples.error().message, HasSubstr("the answer has no end token"));
}

}  // namespace
}  // namespace mc::train
