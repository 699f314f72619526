// SPDX-License-Identifier: Apache-2.0
//
// Sources of tasks and candidates: files that a user names.
//
// A suite is one of
//   - a JSON Lines file of {"level", "problem_id", "name", "code"}, the public data set's layout,
//     where "entry_point" may name the model's class;
//   - a directory of such files, level*.jsonl;
//   - a KernelBench checkout: [KernelBench/]level1/19_ReLU.py and so on;
//   - a directory of families: reduction/row_sum.py and so on (the project's own tasks/);
//   - a directory of .py files.
// Everything here is read under limits, and what cannot be used is one line that names the file
// and, in JSON Lines, the line.  Nothing of a task or candidate is run or parsed as Python.
// Example:
//   const Roots roots{.tasks = "tasks", .kernelbench = getenv_or_empty("MC_KERNELBENCH")};
//   MC_TRY(Task task, load_task("kernelbench:1/19", roots), "load the task");
//   MC_TRY(auto submissions, load_submissions("answers.jsonl"), "load the candidates");
#ifndef MC_TASK_SUITE_H_
#define MC_TASK_SUITE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "task/task.h"

namespace mc::task {

inline constexpr size_t kSuiteBytesMax = 256 << 20;        // For one JSON Lines file of tasks.
inline constexpr size_t kSubmissionsBytesMax = 512 << 20;  // For one JSON Lines file of answers.

// The tasks, in order of level and number or of family and name.  A task's id is "<name>:1/19" for
// numbered tasks, "family/name" for families and "name" for single files.
// kNotFound when there is no such path; kInvalidInput when the path holds no tasks, a line or file
// cannot be used, or two tasks share an id.
Result<std::vector<Task>> load_suite(const std::filesystem::path& path, const std::string& name);

// Paths in which names without a path are looked up; empty where there is none.
struct Roots {
  std::filesystem::path tasks;        // A directory of families.
  std::filesystem::path kernelbench;  // A suite of numbered tasks.
};

// The error of a task of KernelBench where roots.kernelbench is empty.
Error no_kernelbench();

// Loads one task by a name from the user:
//   "path/to/file.py"          that file; its id is the path
//   "kernelbench:1/19"         level 1, problem 19 of roots.kernelbench
//   "path/to/suite:1/19"       the same in the suite at this path; its id is as written
//   "reduction/row_sum"        a task of roots.tasks
// kNotFound where there is none; messages contain only paths that the caller gave.
Result<Task> load_task(const std::string& spec, const Roots& roots);

// The task with its class `name` bound to Model, the name that the harness looks for, in an added
// last line.  kInvalidInput where the task does not define the class.
Result<Task> with_entry_point(Task task, const std::string& name);

// A candidate, and the task that its file names for it ("" where it names none).
struct Submission {
  std::string task;
  Candidate candidate;
  std::string place;  // "answers.jsonl: line 3", or the path.
};

struct Submissions {
  std::vector<Submission> good;
  std::vector<Error> bad;  // One for each unusable line, with its location.
};

// Loads the candidates in a file.  A .jsonl file has one a line, {"task", "sample", "response"},
// with ids "task#sample" (a number or a name), or {"id", "sample", "turn", "completion"} as `bench`
// writes them; any other file is one candidate, whose id is the path.  A line that cannot be read
// or repeats a sample is bad; the other lines stay good.  kInvalidInput for a file that is too
// large, not UTF-8 or empty.  An empty response is kept, since a model may return one; an empty
// file is a mistake.
Result<Submissions> load_submissions(const std::filesystem::path& path);

}  // namespace mc::task

#endif  // MC_TASK_SUITE_H_
