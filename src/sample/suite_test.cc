// SPDX-License-Identifier: Apache-2.0
#include "sample/suite.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.h"

namespace mc::sample {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json row(const std::string& id) {
  return {{"id", id},
          {"prompt", {{{"role", "user"}, {"content", "write it"}}}},
          {"reward_model", {{"style", "rule"}, {"ground_truth", "class Model: pass"}}},
          {"extra_info", {{"depth", 3}, {"families", {"softmax", "elementwise"}}}}};
}

class BenchSuite : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_->path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }

  const Result<TemporaryDirectory> folder_ = TemporaryDirectory::create("suite");
};

TEST_F(BenchSuite, ReadsRowsWithTheirPromptsAndGroups) {
  const auto items =
      load_bench_suite(write("test.jsonl", row("a").dump() + '\n' + row("b").dump()));
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 2U);
  const Item& first = items->front();
  EXPECT_EQ(first.task.id, "a");
  EXPECT_EQ(first.task.code, "class Model: pass");
  EXPECT_EQ(first.level, "depth 3");
  EXPECT_THAT(first.families, ElementsAre("softmax", "elementwise"));
  ASSERT_EQ(first.prompt.size(), 1U);
  EXPECT_EQ(first.prompt[0].content, "write it");
}

TEST(PromptRules, ContainTheRequestedArchitectureOfMusa) {
  const auto rules = [](const char* architecture) {
    return prompt_rules(task::Dialect::kMusa, task::kAnyLanguage, architecture);
  };
  for (const char* text : {"--offload-arch=mp_22", "warps have 128 threads", "72 KiB",
                           "is_privateuseone", "MUSAStream.h", "__mt_bfloat16"}) {
    EXPECT_THAT(rules("mp_22"), testing::HasSubstr(text));
  }
  EXPECT_THAT(rules("mp_31"), testing::HasSubstr("warps have 32 threads"));
  EXPECT_THAT(rules("mp_21"), testing::Not(testing::HasSubstr("__mt_bfloat16")));
}

TEST_F(BenchSuite, CreatesPromptsForTasksWithoutOne) {
  write("level1/19_ReLU.py", "class Model: 'relu'");
  const auto musa = load_bench_suite(folder_->path(), task::Dialect::kMusa);
  ASSERT_TRUE(musa);
  EXPECT_THAT(musa->front().prompt.front().content, testing::HasSubstr("MUSA kernels"));
  EXPECT_THAT(musa->front().prompt.front().content, testing::Not(testing::HasSubstr("CUDA k")));
  EXPECT_THAT(musa->front().prompt.front().content, testing::HasSubstr("--offload-arch=mp_31"));
  const auto numbered = load_bench_suite(folder_->path());
  ASSERT_TRUE(numbered);
  EXPECT_EQ(numbered->front().task.id, "kernelbench:1/19");
  EXPECT_EQ(numbered->front().level, "level 1");
  EXPECT_THAT(numbered->front().prompt.back().content, HasSubstr("class Model: 'relu'"));
}

TEST_F(BenchSuite, ReadsFamiliesAndPlainFiles) {
  write("s/softmax/rows.py", "class Model: pass");
  write("s/plain.py", "class Model: pass");
  const auto items = load_bench_suite(folder_->path() / "s");
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 2U);
  EXPECT_THAT((*items)[0].families, ElementsAre("softmax"));
  EXPECT_EQ((*items)[1].task.id, "plain");
}

TEST_F(BenchSuite, NamesTheInvalidLine) {
  Json no_user = row("x");
  no_user["prompt"][0]["role"] = "assistant";
  Json no_task = row("x");
  no_task.erase("reward_model");
  const struct {
    std::string second_line;
    std::string words;
  } kTable[] = {{"{", "line 2: not a JSON object"},
                {row("a").dump(), "line 2: a second task a"},
                {no_user.dump(), "line 2: prompt: the last message"},
                {no_task.dump(), "line 2: \"reward_model\".\"ground_truth\" is missing"},
                {R"({"id": 3, "prompt": []})", "line 2: \"id\" is missing"}};
  for (const auto& line : kTable) {
    const auto items =
        load_bench_suite(write("t.jsonl", row("a").dump() + '\n' + line.second_line + '\n'));
    ASSERT_FALSE(items) << line.words;
    EXPECT_EQ(items.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(items.error().message, HasSubstr(line.words));
  }
  EXPECT_FALSE(load_bench_suite(write("empty.jsonl", "\n")));
  EXPECT_EQ(load_bench_suite(folder_->path() / "nowhere").error().code, ErrorCode::kNotFound);
}

TEST_F(BenchSuite, PromptLinesContainIdAndMessages) {
  const auto items = load_bench_suite(write("test.jsonl", row("a").dump()));
  const Json line = Json::parse(prompt_lines(*items));
  EXPECT_EQ(line["id"], "a");
  EXPECT_EQ(line["prompt"], row("a")["prompt"]);
}

// ---- Templates ----------------------------------------------------------------------------------

TemplateValue value_of(const std::string& text) {
  return [text] { return Result<std::string>(text); };
}

TEST_F(BenchSuite, TemplatesContainTheTasksTextUnchanged) {
  auto items = load_bench_suite(write("test.jsonl", row("a").dump()));
  (*items)[0].task.code = "x = {{platform}}; $& \\1";
  const TemplateValues values = {
      {"platform", value_of("{{task}}")},
      {"device", [] { return Error{ErrorCode::kUnavailable, "a value that no text asks for"}; }}};
  ASSERT_TRUE(apply_template(write("t.txt", "For {{platform}}:\n{{ task }}{{task}} {{1, 2}} {x}"),
                             values, *items));
  ASSERT_EQ((*items)[0].prompt.size(), 1U);
  EXPECT_EQ((*items)[0].prompt[0].role, "user");
  EXPECT_EQ((*items)[0].prompt[0].content,
            "For {{task}}:\nx = {{platform}}; $& \\1x = {{platform}}; $& \\1 {{1, 2}} {x}");
}

TEST_F(BenchSuite, NamesTheFaultOfATemplate) {
  auto items = load_bench_suite(write("test.jsonl", row("a").dump()));
  const TemplateValues values = {
      {"platform", value_of("CUDA")},
      {"device", [] { return Error{ErrorCode::kUnavailable, "no GPU"}; }}};
  const struct {
    std::string text, words;
  } kTable[] = {
      {"write a kernel", "t.txt: it has no {{task}}"},
      {"{{task}} {{gpu}}", "{{gpu}} is not known: use {{task}}, {{device}}, {{platform}}"},
      {"{{task}} {{device}}", "device: no GPU"},
      {"{{" + std::string(200'000, 'a') + "}}", "has no {{task}}"}};
  for (const auto& line : kTable) {
    const auto done = apply_template(write("t.txt", line.text), values, *items);
    ASSERT_FALSE(done) << line.words;
    EXPECT_THAT(done.error().message, HasSubstr(line.words));
    EXPECT_EQ((*items)[0].prompt[0].content, "write it") << "the prompts are as they were";
  }
  EXPECT_FALSE(apply_template(folder_->path() / "nowhere", values, *items));
}

}  // namespace
}  // namespace mc::sample
