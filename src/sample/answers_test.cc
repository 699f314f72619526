// SPDX-License-Identifier: Apache-2.0
#include "sample/answers.h"

#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::sample {
namespace {

using testing::HasSubstr;

std::vector<Item> items_of(const std::vector<std::string>& ids) {
  std::vector<Item> out;
  for (const std::string& id : ids) out.push_back({{id, id, "code"}, {}, "", {}});
  return out;
}

class Answers : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder_->path() / name) << text;
    return folder_->path() / name;
  }

  const Result<TemporaryDirectory> folder_ = TemporaryDirectory::create("answers");
};

TEST_F(Answers, InTheFormOfEvalAreRead) {
  const auto answers =
      load_answers(write("a.jsonl", R"({"task": "b", "sample": 1, "response": "y"})"
                                    "\n\n"
                                    R"({"id": "a", "sample": 0, "completion": "x"})"
                                    "\n"),
                   items_of({"a", "b"}));
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 2U);
  EXPECT_EQ((*answers)[0].key.id, "a");
  EXPECT_EQ((*answers)[1].completion, "y");
}

TEST_F(Answers, ThatAreInvalidAreNamed) {
  const std::string good = R"({"id": "a", "sample": 0, "completion": "x"})";
  const struct {
    std::string text;
    std::string words;
  } kTable[] = {
      {good + '\n' + good, "a second answer a#0"},
      {good + "\n{", "line 2: not a JSON object"},
      {R"({"id": "a", "completion": "x"})", "\"sample\" is missing"},
      {R"({"id": "b", "sample": 0, "completion": "x"})", "line 1: the suite has no task b"},
      {R"({"id": "a", "sample": 0})", "\"completion\" or \"response\" is missing"},
      {R"({"id": "a", "sample": -1, "completion": "x"})", "\"sample\" is not a number"},
      {"", "holds no answer"}};
  for (const auto& row : kTable) {
    const auto answers = load_answers(write("a.jsonl", row.text), items_of({"a"}));
    ASSERT_FALSE(answers) << row.words;
    EXPECT_EQ(answers.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(answers.error().message, HasSubstr(row.words));
  }
}

TEST_F(Answers, InARunFolderAreFoundByFileName) {
  write("level_1_problem_19_sample_0_kernel.py", "zero");
  write("level_1_problem_19_sample_10_kernel.py", "ten");
  write("level_1_problem_19_sample_0_prompt.txt", "prompt");
  write("eval_results.json", "{}");
  const auto answers = load_run_folder(folder_->path(), items_of({"kernelbench:1/19"}));
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 2U);
  EXPECT_EQ((*answers)[1].key, (store::AnswerKey{"kernelbench:1/19", 10, 0}));
  EXPECT_EQ((*answers)[1].completion, "ten");
  EXPECT_THAT(load_run_folder(folder_->path(), items_of({"kernelbench:2/1"})).error().message,
              HasSubstr("the suite has no task kernelbench:1/19"));
  EXPECT_EQ(load_run_folder(folder_->path() / "no", items_of({"a"})).error().code,
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mc::sample
