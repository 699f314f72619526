// SPDX-License-Identifier: Apache-2.0
//
// Reads a model's answers from files.
//
//   MC_TRY(auto answers, load_answers("answers.jsonl", items), "--answers");
//   MC_TRY(auto answers, load_run_folder("runs/my_run", items), "--runs");
#ifndef MC_SAMPLE_ANSWERS_H_
#define MC_SAMPLE_ANSWERS_H_

#include <filesystem>
#include <span>
#include <vector>

#include "core/result.h"
#include "sample/suite.h"
#include "store/records.h"

namespace mc::sample {

// The answers of a JSON Lines file to tasks of the suite, ordered by key.  An answer to another
// task is an error, because the file then belongs to another suite.
Result<std::vector<store::Answer>> load_answers(const std::filesystem::path& path,
                                                std::span<const Item> items);

// The answers of KernelBench's run folder: files level_X_problem_Y_sample_Z_kernel.py, for tasks
// "kernelbench:X/Y".  Other files are ignored.
Result<std::vector<store::Answer>> load_run_folder(const std::filesystem::path& folder,
                                                   std::span<const Item> items);

}  // namespace mc::sample

#endif  // MC_SAMPLE_ANSWERS_H_
