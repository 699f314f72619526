// SPDX-License-Identifier: Apache-2.0
#include "timing/timed_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mc::timing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Finish = worker::ContestantTimeFinishAnswer;

// Says so of a batch that is over, as a process may.
Result<Batch> finished(const std::string& answer) {
  MC_TRY(const auto said, Finish::from_json(answer), "test");
  Batch batch;
  MC_TRY_VOID(take_times(said, batch), "test");
  if (said.outputs) MC_TRY_VOID(take_outputs(*said.outputs, batch), "test");
  return batch;
}

Result<Batch> with_outputs(const std::string& forms, const std::vector<std::string>& places) {
  worker::BatchOutputs said{{forms}, {}};
  for (const std::string& place : places) said.places.push_back({place});
  Batch batch;
  MC_TRY_VOID(take_outputs(said, batch), "test");
  return batch;
}

const worker::Kernel kKernel{.name = "_Z4axpyPf",
                             .owner = "/tmp/k.so",
                             .stream = 7,
                             .launches = 40,
                             .us = 12.5,
                             .early = 2,
                             .late = 1,
                             .grid = {4, 2, 1},
                             .block = {32, 8, 1},
                             .registers = 18,
                             .shared_bytes = 512};

// kKernel with something changed.
template <typename Change>
worker::Kernel kernel_with(const Change& change) {
  worker::Kernel kernel = kKernel;
  change(kernel);
  return kernel;
}

Result<Batch> traced(std::vector<worker::Kernel> kernels) {
  return finished(
      Finish{.events_us = 3, .busy_us = 12.25, .kernels = std::move(kernels)}.to_json());
}

TEST(BatchAnswer, TellsTheTimes) {
  const auto batch = finished(R"({"ok": true, "events_us": 1234.5})");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->events_us, 1234.5);
  EXPECT_EQ(batch->busy_us, 0);
  EXPECT_THAT(batch->outputs.places, IsEmpty());
  EXPECT_THAT(batch->kernels, IsEmpty());
}

TEST(BatchAnswer, TellsTheKernelsOfATracedBatch) {
  const auto batch = traced({kKernel});
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
TEST(BatchAnswer, HasNeitherTheBracketNorValidity) {
  EXPECT_FALSE(finished(R"({"ok": true, "events_us": 3, "done_us": 9})"));
  EXPECT_FALSE(finished(R"({"ok": true, "events_us": 3, "is_valid": true})"));
}

class MalformedBatch : public ::testing::TestWithParam<std::string> {};

TEST_P(MalformedBatch, IsAProtocolError) {
  const auto batch = finished(R"({"ok": true, )" + GetParam() + "}");
  ASSERT_FALSE(batch) << GetParam();
  EXPECT_EQ(batch.error().code, ErrorCode::kProtocol);
}

INSTANTIATE_TEST_SUITE_P(
    Answers, MalformedBatch,
    ::testing::Values(R"("busy_us": 1)", R"("events_us": "1")", R"("events_us": null)",
                      R"("events_us": [])", R"("events_us": NaN)", R"("events_us": "nan")",
                      R"("events_us": 1e999)", R"("events_us": "inf")", R"("events_us": -1)",
                      R"("events_us": "-inf")", R"("events_us": 1e300)",
                      R"("events_us": 1, "busy_us": -1)", R"("events_us": 1, "busy_us": "nan")",
                      R"("events_us": 1, "outputs": null)", R"("events_us": 1, "outputs": [])",
                      R"("events_us": 1, "outputs": {})",
                      R"("events_us": 1, "outputs": {"forms": []})",
                      R"("events_us": 1, "outputs": {"places": []})",
                      R"("events_us": 1, "outputs": {"forms": [], "places": ["\ud800"]})",
                      R"("events_us": 1, "kernels": 5)", R"("events_us": 1, "kernels": null)",
                      R"("events_us": 1, "kernels": [{}])"));

class MalformedKernel : public ::testing::TestWithParam<worker::Kernel> {};

TEST_P(MalformedKernel, IsAProtocolErrorAmongOthers) {
  for (size_t at : {0, 1, 100}) {
    std::vector<worker::Kernel> kernels(101, kKernel);
    kernels[at] = GetParam();
    const auto batch = traced(kernels);
    ASSERT_FALSE(batch) << at;
    EXPECT_EQ(batch.error().code, ErrorCode::kProtocol);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, MalformedKernel,
    ::testing::Values(
        kernel_with([](auto& k) { k.stream = -1; }), kernel_with([](auto& k) { k.launches = 0; }),
        kernel_with([](auto& k) { k.launches = INT64_MAX; }),
        kernel_with([](auto& k) { k.us = -12.5; }), kernel_with([](auto& k) { k.us = 1e300; }),
        kernel_with([](auto& k) { k.us = NAN; }), kernel_with([](auto& k) { k.us = INFINITY; }),
        kernel_with([](auto& k) { k.early = -1; }), kernel_with([](auto& k) { k.late = -1; }),
        kernel_with([](auto& k) { k.registers = -18; }),
        kernel_with([](auto& k) { k.shared_bytes = INT64_MIN; }),
        kernel_with([](auto& k) { k.grid = {4, 2}; }),
        kernel_with([](auto& k) { k.grid = {4, 2, 1, 1}; }),
        kernel_with([](auto& k) { k.grid = {}; }),
        kernel_with([](auto& k) { k.block = {32, -1, 1}; }),
        kernel_with([](auto& k) { k.block = {INT64_MAX, 1, 1}; })));

TEST(BatchAnswer, IsBoundedInWhatIsKept) {
  const auto batch = traced(std::vector<worker::Kernel>(
      1000, kernel_with([](auto& k) { k.name = k.owner = std::string(5000, 'k'); })));
  ASSERT_TRUE(batch);
  EXPECT_THAT(batch->kernels, SizeIs(64));
  EXPECT_THAT(batch->kernels[0].name, SizeIs(4096));
  EXPECT_THAT(batch->kernels[0].owner, SizeIs(4096));
}

// A judge's question has room for the forms and sixteen places.
TEST(BatchAnswer, HasNothingThatWouldChokeTheJudge) {
  const auto text = [](size_t size) { return "\"" + std::string(size, 'x') + "\""; };
  EXPECT_TRUE(with_outputs(text(7 << 20), {"[0]", text(255 << 10)}));
  EXPECT_FALSE(with_outputs(text(8 << 20), {}));
  EXPECT_FALSE(with_outputs("[]", {"[0]", text(256 << 10)}));
  EXPECT_TRUE(with_outputs("[]", std::vector<std::string>(4096, "[0, 8]")));
  EXPECT_FALSE(with_outputs("[]", std::vector<std::string>(4097, "[0, 8]")));
}

TEST(BatchAnswer, IsPassedOnAsItIs) {
  const std::string odd =
      R"([{"offset":-1},[[]],"text",null,-0.5,18446744073709551615,"\u0000\"é"])";
  const auto batch = finished(R"({"ok": true, "events_us": 1, "outputs": {"forms": {"a": null}, )"
                              R"("places": )" +
                              odd + "}}");
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->outputs.forms.json, R"({"a":null})");
  std::vector<std::string> places;
  for (const worker::Tree& place : batch->outputs.places) places.push_back(place.json);
  EXPECT_THAT(places, ElementsAre(R"({"offset":-1})", "[[]]", "\"text\"", "null", "-0.5",
                                  "18446744073709551615", R"("\u0000\"é")"));
}

}  // namespace
}  // namespace mc::timing
