// SPDX-License-Identifier: Apache-2.0
#include "timing/timed_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace mc::timing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kKernel =
    R"({"name": "_Z4axpyPf", "owner": "/tmp/k.so", "stream": 7, "launches": 40, "us": 12.5,
        "early": 2, "late": 1, "grid": [4, 2, 1], "block": [32, 8, 1], "registers": 18,
        "shared_bytes": 512})";

// kKernel with one member changed.
std::string kernel_with(const std::string& old, const std::string& fresh) {
  std::string kernel = kKernel;
  const size_t at = kernel.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return kernel.replace(at, old.size(), fresh);
}

std::string list_of(size_t count, const std::string& item) {
  std::string list = "[" + item;
  for (size_t i = 1; i < count; ++i) list += "," + item;
  return list + "]";
}

TEST(DecodeBatch, ReadsTheAnswerToAnEnqueuedBatch) {
  const auto queued = decode_batch(
      R"({"ok": true, "outputs": {"forms": [{"t": "tensor"}], "places": [[0, 512], [0, 1024]]}})");
  ASSERT_TRUE(queued);
  EXPECT_EQ(queued->forms, R"([{"t":"tensor"}])");
  EXPECT_THAT(queued->places, ElementsAre("[0,512]", "[0,1024]"));
  EXPECT_EQ(queued->events_us, 0);
  const auto finished = decode_batch(R"({"ok": true, "events_us": 1234.5})");
  ASSERT_TRUE(finished);
  EXPECT_EQ(finished->events_us, 1234.5);
  EXPECT_EQ(finished->forms, "[]");
  EXPECT_THAT(finished->places, IsEmpty());
  EXPECT_THAT(finished->kernels, IsEmpty());
}

TEST(DecodeBatch, ReadsTheKernelsOfATracedBatch) {
  const auto batch =
      decode_batch(R"({"events_us": 3, "busy_us": 12.25, "kernels": [)" + kKernel + "]}");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->busy_us, 12.25);
  ASSERT_THAT(batch->kernels, SizeIs(1));
  const TracedKernel& kernel = batch->kernels[0];
  EXPECT_EQ(kernel.name, "_Z4axpyPf");
  EXPECT_EQ(kernel.owner, "/tmp/k.so");
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.launches, 40);
  EXPECT_EQ(kernel.time_us, 12.5);
  EXPECT_EQ(kernel.early, 2);
  EXPECT_EQ(kernel.late, 1);
  EXPECT_THAT(kernel.grid, ElementsAre(4, 2, 1));
  EXPECT_THAT(kernel.block, ElementsAre(32, 8, 1));
  EXPECT_EQ(kernel.registers, 18);
  EXPECT_EQ(kernel.shared_bytes, 512);
}

// What the supervisor itself saw is not for the process to say.
TEST(DecodeBatch, TakesNeitherTheBracketNorValidityFromTheProcess) {
  const auto batch = decode_batch(R"({"events_us": 3, "done_us": 9, "is_valid": true})");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->done_us, 0);
  EXPECT_FALSE(batch->is_valid);
}

class MalformedBatch : public ::testing::TestWithParam<std::string> {};

TEST_P(MalformedBatch, IsAProtocolError) {
  const auto batch = decode_batch(GetParam());
  ASSERT_FALSE(batch) << GetParam();
  EXPECT_EQ(batch.error().code, ErrorCode::kProtocol);
}

INSTANTIATE_TEST_SUITE_P(Answers, MalformedBatch,
                         ::testing::Values("", "not json", "null", "7", "\"text\"", "[]", "[{}]",
                                           "{\"events_us\": 1", "{} {}", R"({"events_us": "1"})",
                                           R"({"events_us": null})", R"({"events_us": []})",
                                           R"({"events_us": NaN})", R"({"events_us": 1e999})",
                                           R"({"events_us": Infinity})", R"({"events_us": -1})",
                                           R"({"events_us": 1e300})", R"({"busy_us": -1})",
                                           "{\"events_us\": 1, \"x\": \"\xff\"}",
                                           R"({"outputs": {"forms": [], "places": ["\ud800"]}})",
                                           R"({"outputs": null})", R"({"outputs": []})",
                                           R"({"outputs": {}})", R"({"outputs": {"forms": []}})",
                                           R"({"outputs": {"places": []}})", R"({"kernels": 5})",
                                           R"({"kernels": "all"})", R"({"kernels": [{}]})",
                                           R"({"kernels": [5]})", R"({"kernels": {"a": 1}})"));

INSTANTIATE_TEST_SUITE_P(
    Kernels, MalformedBatch, ::testing::ValuesIn([] {
      std::vector<std::string> answers;
      for (const std::string& kernel :
           {kernel_with("\"_Z4axpyPf\"", "7"), kernel_with("\"/tmp/k.so\"", "null"),
            kernel_with("\"stream\": 7", "\"stream\": \"7\""), kernel_with("40", "[]"),
            kernel_with("40", "0"), kernel_with("12.5", "\"12.5\""), kernel_with("12.5", "-12.5"),
            kernel_with("18", "1e300"), kernel_with("18", "-18"),
            kernel_with("18", "18446744073709551615"), kernel_with("12.5", "null"),
            kernel_with("[4, 2, 1]", "[4, 2]"), kernel_with("[4, 2, 1]", "4"),
            kernel_with("[4, 2, 1]", "[4, 2, \"1\"]"), kernel_with("[32, 8, 1]", "{}"),
            kernel_with("\"registers\": 18,", ""), kernel_with("512", "{}")}) {
        answers.push_back(R"({"events_us": 1, "kernels": [)" + kKernel + "," + kernel + "]}");
      }
      return answers;
    }()));

TEST(DecodeBatch, BoundsWhatItKeeps) {
  const std::string outputs = R"({"forms": [], "places": )" + list_of(10000, "[0, 8]") + "}";
  const std::string kernels = list_of(1000, kernel_with("_Z4axpyPf", std::string(5000, 'k')));
  const auto batch = decode_batch(R"({"outputs": )" + outputs + R"(, "kernels": )" + kernels + "}");
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->places, SizeIs(4096));
  EXPECT_THAT(batch->kernels, SizeIs(64));
  EXPECT_THAT(batch->kernels[0].name, SizeIs(4096));
}

// A judge's question has room for the forms and sixteen places.
TEST(DecodeBatch, PassesNothingOnThatWouldChokeTheJudge) {
  const auto answer = [](size_t forms, size_t place) {
    return R"({"outputs": {"forms": [")" + std::string(forms, 'f') + R"("], "places": [[0], [")" +
           std::string(place, 'p') + "\"]]}}";
  };
  EXPECT_TRUE(decode_batch(answer(7 << 20, 255 << 10)));
  EXPECT_FALSE(decode_batch(answer(8 << 20, 0)));
  EXPECT_FALSE(decode_batch(answer(0, 256 << 10)));
}

TEST(DecodeBatch, PassesOutputsOnAsTheyAre) {
  const std::string odd =
      R"([{"offset":-1},[[]],"text",null,-0.5,18446744073709551615,"\u0000\"é"])";
  const auto batch = decode_batch(R"({"outputs": {"forms": {"a": null}, "places": )" + odd + "}}");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->forms, R"({"a":null})");
  EXPECT_THAT(batch->places, ElementsAre(R"({"offset":-1})", "[[]]", "\"text\"", "null", "-0.5",
                                         "18446744073709551615", R"("\u0000\"é")"));
}

TEST(DecodeBatch, TakesMembersThatItDoesNotKnow) {
  EXPECT_TRUE(decode_batch(R"({"ok": true, "more": {"a": [1]}, "events_us": 2})"));
  EXPECT_TRUE(decode_batch("{}"));
  EXPECT_THAT(decode_batch(R"({"kernels": null})").value().kernels, IsEmpty());
}

}  // namespace
}  // namespace mc::timing
