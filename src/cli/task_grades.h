// SPDX-License-Identifier: Apache-2.0
//
// The grades of `musacoder task check`, as JSON Lines and as a table (docs/task_hygiene.md).
#ifndef MC_CLI_TASK_GRADES_H_
#define MC_CLI_TASK_GRADES_H_

#include <string>
#include <vector>

#include "eval/pipeline.h"
#include "task/task.h"

namespace mc::cli {

inline constexpr const char* kTrivial = "trivial";
inline constexpr const char* kInvalid = "invalid";          // The file is not a valid task.
inline constexpr const char* kUnsupported = "unsupported";  // This backend cannot judge the task.
inline constexpr const char* kFailed = "failed";  // The machine or the task's own code failed.

struct GradedTask {
  std::string task;
  std::string grade;  // A grade of task::TaskGrade, or one of the names above.
  std::vector<std::string> reasons;
  // The shape at which the task was graded: "native" or "reduced"; "" if it was not graded.
  std::string shape;
};

// The grade of a task.  It is "weak" if other harnesses accept wrong answers that this one rejects.
GradedTask graded(const task::Task& task, eval::Pipeline::Hygiene found);

std::string json_line(const GradedTask& task);
std::string grades_table(const std::vector<GradedTask>& all);
std::string grades_summary(const std::vector<GradedTask>& all);  // "3 tasks: 2 good, 1 weak".
int exit_code_of(const std::vector<GradedTask>& all);

}  // namespace mc::cli

#endif  // MC_CLI_TASK_GRADES_H_
