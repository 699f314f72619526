// SPDX-License-Identifier: Apache-2.0
#include "task/suite.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"
#include "core/utf8.h"

namespace mc::task {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;

class Suite : public testing::Test {
 protected:
  Suite() : directory_(std::move(TemporaryDirectory::create("suite-test")).value()) {}

  fs::path root() const { return directory_.path(); }
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = root() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string error_of_submissions(const std::string& name, const std::string& text) const {
    const auto loaded = load_submissions(write(name, text));
    if (!loaded) return loaded.error().message;
    return loaded->bad.empty() ? "" : loaded->bad.front().message;
  }

 private:
  TemporaryDirectory directory_;
};

std::vector<std::string> ids_of(const Result<std::vector<Task>>& tasks) {
  if (!tasks) return {tasks.error().message};
  std::vector<std::string> ids;
  for (const Task& task : *tasks) ids.push_back(task.id);
  return ids;
}

constexpr const char* kTwoLines =
    R"({"level": 1, "problem_id": 20, "name": "20_LeakyReLU", "code": "import torch\n"})"
    "\r\n\n"
    R"({"level": 1, "problem_id": 3, "name": "3_Batched", "code": "class Model: pass"})";

TEST_F(Suite, ReadsJsonLinesInOrderOfLevelAndNumber) {
  const auto tasks = load_suite(write("level1.jsonl", kTwoLines), "kb");
  EXPECT_EQ(ids_of(tasks), (std::vector<std::string>{"kb:1/3", "kb:1/20"}));
  EXPECT_EQ(tasks->at(1).name, "20_LeakyReLU");
  EXPECT_EQ(tasks->at(1).code, "import torch\n");
}

TEST_F(Suite, BindsTheEntryPointToModel) {
  const std::string line =
      R"({"level": 1, "problem_id": 3, "name": "x", "code": "class Netto: pass\nclass Net: pass",)";
  const auto tasks = load_suite(write("a.jsonl", line + R"("entry_point": "Net"})"), "kb");
  ASSERT_TRUE(tasks) << tasks.error().message;
  EXPECT_THAT(tasks->at(0).code, EndsWith("\n\nModel = Net\n"));
  for (const char* name : {"Ne", "Nets", "", "Net; import os"}) {
    const auto refused = with_entry_point({"id", "name", "class Net: pass"}, name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidInput);
  }
  EXPECT_EQ(with_entry_point({"id", "name", "x"}, "Model")->code, "x");
}

TEST_F(Suite, ReadsADirectoryOfJsonLines) {
  write("level2.jsonl", R"({"level": 2, "problem_id": 1, "name": "x", "code": "y"})");
  write("level1.jsonl", kTwoLines);
  write("README.md", "not a task");
  EXPECT_EQ(ids_of(load_suite(root(), "kb")),
            (std::vector<std::string>{"kb:1/3", "kb:1/20", "kb:2/1"}));
}

TEST_F(Suite, ReadsACheckout) {
  write("KernelBench/level1/19_ReLU.py", "relu");
  write("KernelBench/level1/100_HingeLoss.py", "hinge");
  write("KernelBench/level3/2_MLP.py", "mlp");
  write("KernelBench/level1/__init__.py", "not a task");
  const auto tasks = load_suite(root(), "kernelbench");
  EXPECT_EQ(ids_of(tasks),
            (std::vector<std::string>{"kernelbench:1/19", "kernelbench:1/100", "kernelbench:3/2"}));
  EXPECT_EQ(tasks->at(0).name, "19_ReLU");
  EXPECT_EQ(ids_of(load_suite(root() / "KernelBench", "kernelbench")), ids_of(tasks));
}

TEST_F(Suite, ReadsADirectoryOfFamilies) {
  write("scan/cumsum_rows.py", "scan");
  write("loss/mse.py", "mse");
  write("loss/notes.txt", "not a task");
  write(".git/hook.py", "not a task");
  EXPECT_EQ(ids_of(load_suite(root(), "own")),
            (std::vector<std::string>{"loss/mse", "scan/cumsum_rows"}));
}

TEST_F(Suite, NamesTheLineThatCannotBeRead) {
  const struct {
    const char* line;
    const char* message;
  } kTable[] = {
      {"{\"level\": 1,", "line 2: not JSON"},
      {"[]", "line 2: not a JSON object"},
      {"{}", "line 2: \"level\" is missing"},
      {R"({"level": "1"})", "line 2: \"level\" is not a number from 0 to 10^9"},
      {R"({"level": -1})", "line 2: \"level\" is not a number from 0 to 10^9"},
      {R"({"level": 1, "problem_id": 1.5})",
       "line 2: \"problem_id\" is not a number from 0 to 10^9"},
      {R"({"level": 1, "problem_id": 1})", "line 2: \"name\" is missing"},
      {R"({"level": 1, "problem_id": 1, "name": "n", "code": 3})",
       "line 2: \"code\" is not a string"},
      {R"({"level": 1, "problem_id": 1, "name": "n", "code": ""})", "line 2: \"code\" is empty"},
      {"{\"level\": 1, \"problem_id\": 1, \"name\": \"\xff\"}", "line 2: not JSON"},
  };
  for (const auto& row : kTable) {
    const auto tasks = load_suite(write("bad.jsonl", std::string("\n") + row.line + "\n"), "kb");
    ASSERT_FALSE(tasks.has_value()) << row.line;
    EXPECT_EQ(tasks.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(tasks.error().message, (root() / "bad.jsonl").string() + ": " + row.message);
  }
}

TEST_F(Suite, RefusesTwoTasksWithOneId) {
  const std::string line = R"({"level": 1, "problem_id": 7, "name": "x", "code": "y"})";
  EXPECT_EQ(ids_of(load_suite(write("twice.jsonl", line + "\n" + line), "kb")),
            std::vector<std::string>{"two tasks with the id kb:1/7"});
}

TEST_F(Suite, ReportsAPathWithoutTasks) {
  EXPECT_EQ(load_suite(root() / "nowhere", "kb").error().code, ErrorCode::kNotFound);
  EXPECT_THAT(ids_of(load_suite(root(), "kb")).at(0), EndsWith(" holds no tasks"));
  EXPECT_THAT(ids_of(load_suite(write("e.jsonl", "\n"), "kb")).at(0), EndsWith(" holds no tasks"));
}

TEST_F(Suite, FindsATaskByEachKindOfName) {
  write("tasks/reduction/row_sum.py", "own");
  write("kb/level1.jsonl", kTwoLines);
  const std::string file = write("mine.py", "mine");
  const Roots roots{.tasks = root() / "tasks", .kernelbench = root() / "kb"};
  const std::string suite = (root() / "kb").string();

  EXPECT_EQ(load_task("reduction/row_sum", roots)->code, "own");
  EXPECT_EQ(load_task("reduction/row_sum", roots)->id, "reduction/row_sum");
  EXPECT_EQ(load_task("kernelbench:1/20", roots)->name, "20_LeakyReLU");
  EXPECT_EQ(load_task(suite + ":1/3", roots)->id, suite + ":1/3");
  EXPECT_EQ(load_task(file, roots)->code, "mine");
  EXPECT_EQ(load_task(file, roots)->id, file);
}

TEST_F(Suite, ReportsWhyATaskIsNotFound) {
  write("kb/level1.jsonl", kTwoLines);
  const Roots roots{.tasks = root() / "tasks", .kernelbench = root() / "kb"};
  const struct {
    const char* spec;
    ErrorCode code;
    std::string message;
  } kTable[] = {
      // A service returns these messages to its callers, so they contain no path of this machine.
      {"kernelbench:1/4", ErrorCode::kNotFound, "no task kernelbench:1/4"},
      {"reduction/none", ErrorCode::kNotFound, "no task reduction/none"},
      {"../etc/passwd", ErrorCode::kInvalidInput,
       "not a task: \"../etc/passwd\"; give a .py file, suite:level/number or family/name"},
      {"", ErrorCode::kInvalidInput,
       "not a task: \"\"; give a .py file, suite:level/number or family/name"},
  };
  for (const auto& row : kTable) {
    const auto task = load_task(row.spec, roots);
    ASSERT_FALSE(task.has_value()) << row.spec;
    EXPECT_EQ(task.error().code, row.code);
    EXPECT_EQ(task.error().message, row.message);
  }
  EXPECT_EQ(load_task("kernelbench:1/4", {}).error().message,
            "no copy of KernelBench: set MC_KERNELBENCH to a checkout or to a directory of "
            "level*.jsonl");
}

TEST_F(Suite, ReadsOneAnswer) {
  const std::string path = write("answer.md", "Here is the kernel.\n");
  const auto submissions = load_submissions(path);
  ASSERT_TRUE(submissions.has_value()) << submissions.error().message;
  ASSERT_EQ(submissions->good.size(), 1U);
  EXPECT_EQ(submissions->good.at(0).task, "");
  EXPECT_EQ(submissions->good.at(0).candidate.id, path);
  EXPECT_EQ(submissions->good.at(0).candidate.answer, "Here is the kernel.\n");
}

TEST_F(Suite, ReadsManyAnswersAndKeepsAnEmptyOne) {
  const auto submissions = load_submissions(
      write("answers.jsonl", R"({"task": "loss/mse", "sample": 0, "response": "a"})"
                             "\n"
                             R"({"task": "loss/mse", "sample": 1, "response": ""})"));
  ASSERT_TRUE(submissions.has_value()) << submissions.error().message;
  ASSERT_EQ(submissions->good.size(), 2U);
  EXPECT_EQ(submissions->good.at(1).task, "loss/mse");
  EXPECT_EQ(submissions->good.at(1).candidate.id, "loss/mse#1");
  EXPECT_EQ(submissions->good.at(1).candidate.answer, "");
}

TEST_F(Suite, AcceptsANameForASample) {
  const auto submissions = load_submissions(
      write("answers.jsonl", R"({"task": "loss/mse", "sample": "race", "response": "a"})"));
  ASSERT_TRUE(submissions.has_value()) << submissions.error().message;
  EXPECT_EQ(submissions->good.at(0).candidate.id, "loss/mse#race");
}

TEST_F(Suite, ReadsTheAnswersThatABenchmarkStored) {
  const auto submissions = load_submissions(
      write("answers.jsonl",
            R"({"id": "kb:1/2", "sample": 3, "completion": "a", "num_tokens": 1, "finish": "stop"})"
            "\n"
            R"({"id": "kb:1/2", "sample": 3, "turn": 1, "completion": "b"})"));
  ASSERT_TRUE(submissions.has_value()) << submissions.error().message;
  ASSERT_EQ(submissions->good.size(), 2U);
  EXPECT_EQ(submissions->good[0].task, "kb:1/2");
  EXPECT_EQ(submissions->good[0].candidate.id, "kb:1/2#3");
  EXPECT_EQ(submissions->good[1].candidate.id, "kb:1/2#3.1");
  EXPECT_EQ(submissions->good[1].candidate.answer, "b");
}

TEST_F(Suite, KeepsTheGoodLinesBesideBadOnes) {
  const auto line = [](const char* sample, const char* response) {
    return std::string(R"({"task": "a", "sample": )") + sample + R"(, "response": )" + response +
           "}\n";
  };
  const auto submissions = load_submissions(write(
      "mixed.jsonl", line("0", "\"x\"") + "{\n" + line("1", "\"\\ud800\"") + line("0", "\"y\"") +
                         line("2", "7") + "[]\n" + line("3", "\"\\ud83d\\ude00\"")));
  ASSERT_TRUE(submissions.has_value()) << submissions.error().message;
  ASSERT_EQ(submissions->good.size(), 2U);
  EXPECT_THAT(submissions->good[1].place, EndsWith("mixed.jsonl: line 7"));
  EXPECT_EQ(submissions->good[1].candidate.answer, "\xf0\x9f\x98\x80");
  std::vector<std::string> bad;
  for (const Error& error : submissions->bad) {
    bad.push_back(error.message.substr(error.message.find("line")));
  }
  EXPECT_EQ(bad, (std::vector<std::string>{
                     "line 2: not JSON", std::string("line 3: ") + kLoneSurrogate,
                     "line 4: a second answer a#0", "line 5: \"response\" is not a string",
                     "line 6: not a JSON object"}));
}

TEST_F(Suite, RefusesAnswersThatCannotBeUsed) {
  EXPECT_THAT(error_of_submissions("empty.md", " \n\t\n"), EndsWith("empty.md is empty"));
  EXPECT_THAT(error_of_submissions("empty.jsonl", "\n"), EndsWith("empty.jsonl is empty"));
  EXPECT_THAT(error_of_submissions("latin.md", "caf\xe9"), EndsWith("is not UTF-8 at byte 3"));
  EXPECT_THAT(error_of_submissions("large.md", std::string(50 << 20, 'x')),
              EndsWith("large.md holds more than 16777216 bytes"));
  EXPECT_THAT(error_of_submissions("broken.jsonl", "\n\n{\"task\": \"a/b\", "),
              EndsWith("broken.jsonl: line 3: not JSON"));
  EXPECT_THAT(error_of_submissions("f.jsonl", R"({"task": "a", "sample": 0})"),
              EndsWith("line 1: \"response\" is missing"));
  EXPECT_THAT(error_of_submissions("t.jsonl", R"({"task": "", "sample": 0, "response": ""})"),
              EndsWith("line 1: \"task\" is empty"));
  EXPECT_THAT(error_of_submissions("s.jsonl", R"({"task": "a", "response": ""})"),
              EndsWith("s.jsonl: line 1: \"sample\" is missing"));
  const std::string line = R"({"task": "a", "sample": 0, "response": ""})";
  EXPECT_THAT(error_of_submissions("two.jsonl", line + "\n" + line),
              EndsWith("line 2: a second answer a#0"));
  const std::string large = std::string(kAnswerBytesMax + 1, 'x');
  EXPECT_THAT(error_of_submissions("l.jsonl",
                                   R"({"task": "a", "sample": 0, "response": ")" + large + "\"}"),
              EndsWith("line 1: \"response\" holds 16777217 bytes, more than 16777216"));
}

TEST_F(Suite, RefusesAFileThatIsNotThere) {
  EXPECT_EQ(load_submissions(root() / "none.md").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(load_submissions(root() / "none.jsonl").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(load_submissions(root()).error().code, ErrorCode::kInvalidInput);
}

TEST(OwnTasks, AllLoad) {
  const auto tasks = load_suite(MC_SOURCE_DIR "/data/tasks", "own");
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  EXPECT_GE(tasks->size(), 36U);
}

TEST(KernelBench, AllTasksLoadWhereACopyIsGiven) {
  const char* path = std::getenv("MC_KERNELBENCH");
  if (path == nullptr) GTEST_SKIP() << "no copy of KernelBench: set MC_KERNELBENCH";
  const auto tasks = load_suite(path, "kernelbench");
  ASSERT_TRUE(tasks.has_value()) << tasks.error().message;
  EXPECT_GE(tasks->size(), 100U);
}

}  // namespace
}  // namespace mc::task
