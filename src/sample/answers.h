// SPDX-License-Identifier: Apache-2.0
//
// Answers that a model gave, as they lie in files.
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

// The answers of a JSON Lines file to tasks of the suite; those to other tasks are an error, since
// somebody mixed up files.  Ordered by key.
Result<std::vector<store::Answer>> load_answers(const std::filesystem::path& path,
                                                std::span<const Item> items);

// KernelBench's run folder: level_X_problem_Y_sample_Z_kernel.py, for tasks "kernelbench:X/Y".
// Other files are passed over.
Result<std::vector<store::Answer>> load_run_folder(const std::filesystem::path& folder,
                                                   std::span<const Item> items);

}  // namespace mc::sample

#endif  // MC_SAMPLE_ANSWERS_H_
