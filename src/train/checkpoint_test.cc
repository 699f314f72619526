// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "core/file.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

RunTensors tensors_from(float first, int64_t size = 6) {
  const at::Tensor all = at::arange(size, at::kFloat) + first;
  return {all, all + 10, all + 20, at::Tensor()};
}

RunTensors empty_tensors(int64_t size = 6) {
  return {at::zeros({size}), at::zeros({size}), at::zeros({size}), at::Tensor()};
}

class Checkpoint : public testing::Test {
 protected:
  Checkpoint() : room_(std::move(TemporaryDirectory::create("checkpoint").value())) {}

  std::string fault_of(const RunTensors& tensors) const {
    const auto state = load_checkpoint(run(), tensors);
    return state ? "" : state.error().message;
  }
  const fs::path& run() const { return room_.path(); }

  TemporaryDirectory room_;
};

TEST_F(Checkpoint, TheLastOneIsReadBack) {
  RunState state{.step = 7, .tokens = 90, .elapsed_s = 1.25, .position = {3, 4}, .more = "text"};
  RunTensors saved = tensors_from(1);
  saved.generator = at::arange(6, at::kFloat) * 2;
  ASSERT_TRUE(save_checkpoint(run(), {.step = 2}, tensors_from(5)));
  ASSERT_TRUE(save_checkpoint(run(), state, saved));
  RunTensors tensors = empty_tensors();
  tensors.generator = at::zeros({6});
  const auto found = load_checkpoint(run(), tensors);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->step, 7);
  EXPECT_EQ(found->tokens, 90);
  EXPECT_EQ(found->elapsed_s, 1.25);
  EXPECT_EQ(found->position, (DataPosition{3, 4}));
  EXPECT_EQ(found->more, "text");
  EXPECT_TRUE(tensors.master.equal(saved.master));
  EXPECT_TRUE(tensors.first.equal(saved.first));
  EXPECT_TRUE(tensors.second.equal(saved.second));
  EXPECT_TRUE(tensors.generator.equal(saved.generator));
}

TEST_F(Checkpoint, TwoAreKept) {
  for (int64_t step = 8; step <= 11; ++step) {
    ASSERT_TRUE(save_checkpoint(run(), {.step = step}, tensors_from(1)));
  }
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(run() / "checkpoints")) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{"step-00000010", "step-00000011"}));
}

TEST_F(Checkpoint, OneOfAnotherModelIsAnError) {
  EXPECT_THAT(fault_of(empty_tensors()), HasSubstr("there is no checkpoint in"));
  ASSERT_TRUE(save_checkpoint(run(), {.step = 1}, tensors_from(1)));
  EXPECT_THAT(fault_of(empty_tensors(5)), HasSubstr("it has no \"master\" of this model's size"));
  RunTensors with_generator = empty_tensors();
  with_generator.generator = at::zeros({6});
  EXPECT_THAT(fault_of(with_generator), HasSubstr("it has no \"generator\""));
}

TEST_F(Checkpoint, ADamagedStateIsAnError) {
  ASSERT_TRUE(save_checkpoint(run(), {.step = 1}, tensors_from(1)));
  const fs::path path = run() / "checkpoints" / "step-00000001" / "state.json";
  const auto fault_with = [&](const std::string& text) {
    EXPECT_TRUE(write_file_atomically(path, text));
    return fault_of(empty_tensors());
  };
  EXPECT_THAT(fault_with("[]"), HasSubstr("state.json has no \"step\""));
  EXPECT_THAT(fault_with(R"({"step": 1.5, "tokens": 1, "epoch": 0, "next": 0, "elapsed_s": 1})"),
              HasSubstr("has no \"step\""));
  EXPECT_THAT(fault_with(R"({"step": 1, "epoch": 0, "next": 0, "elapsed_s": 1})"),
              HasSubstr("has no \"tokens\""));
  EXPECT_THAT(fault_with(R"({"step": 1, "tokens": 1, "epoch": 0, "next": 0})"),
              HasSubstr("has no time"));
  EXPECT_EQ(fault_with(R"({"step": 1, "tokens": 1, "epoch": 0, "next": 0, "elapsed_s": 1})"), "");
}

TEST_F(Checkpoint, ARunFolderIsNotTakenTwice) {
  const auto open = [&](Existing existing) {
    return open_run(run(), "sft", R"({"seed":1})", existing);
  };
  {
    const auto fresh = open(Existing::kRefuse);
    ASSERT_TRUE(fresh) << fresh.error().message;
  }
  const auto again = open(Existing::kRefuse);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("holds a run already; --resume goes on with it"));
  EXPECT_TRUE(open(Existing::kResume));
}

TEST_F(Checkpoint, CheckpointsWithoutAStoreAreRefused) {
  ASSERT_TRUE(save_checkpoint(run(), {.step = 1}, tensors_from(1)));
  const auto opened = open_run(run(), "sft", "{}", Existing::kResume);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("holds checkpoints without their store"));
}

}  // namespace
}  // namespace mc::train
