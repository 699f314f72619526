// SPDX-License-Identifier: Apache-2.0
#include "cli/task_grades.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/commands.h"

namespace mc::cli {
namespace {

TEST(TaskGrades, AWeaknessOfOtherHarnessesIsAReason) {
  const task::Task task{"t", "t", ""};
  const auto grade_of = [&](const std::string& grade, std::vector<std::string> as_initialised) {
    return graded(task, {.grade = {grade, {"why"}},
                         .as_initialised = std::move(as_initialised),
                         .shape = "native"});
  };
  const GradedTask good = grade_of("good", {});
  EXPECT_EQ(good.task, "t");
  EXPECT_EQ(good.grade, "good");
  EXPECT_EQ(good.reasons, std::vector<std::string>{"why"});
  EXPECT_EQ(good.shape, "native");
  const GradedTask weak = grade_of("good", {"zeros", "the input"});
  EXPECT_EQ(weak.grade, "weak");
  EXPECT_EQ(weak.reasons.back(),
            "with weights as the task makes them a trial is passed by zeros, the input");
  EXPECT_EQ(grade_of("trivial", {"zeros"}).grade, "trivial");
}

TEST(TaskGrades, ArePrintedAsLinesAndAsATable) {
  const std::vector<GradedTask> all = {{"family/a_task", "good", {}, "reduced"},
                                       {"b", "invalid", {"line 1\nline 2", "more"}, ""}};
  EXPECT_EQ(json_line(all[1]),
            R"({"task":"b","grade":"invalid","reasons":["line 1\nline 2","more"],"shape":""})"
            "\n");
  EXPECT_EQ(grades_table(all),
            "task           grade        sizes    why\n"
            "family/a_task  good         reduced\n"
            "b              invalid               line 1 line 2; more\n");
  EXPECT_EQ(grades_summary(all), "2 tasks: 1 good, 1 invalid\n");
  EXPECT_EQ(grades_summary({all[0]}), "1 task: 1 good\n");
}

TEST(TaskGrades, DecideTheExitCode) {
  const auto code = [](const std::vector<std::string>& grades) {
    std::vector<GradedTask> all;
    for (const std::string& grade : grades) all.push_back({"t", grade, {}, ""});
    return exit_code_of(all);
  };
  EXPECT_EQ(code({"good", "weak"}), kExitDone);
  EXPECT_EQ(code({"good", "trivial"}), kExitFound);
  EXPECT_EQ(code({"unsupported"}), kExitFound);
  EXPECT_EQ(code({"invalid", "failed"}), kExitFound);
  EXPECT_EQ(code({"good", "failed"}), kExitMachine);
}

}  // namespace
}  // namespace mc::cli
