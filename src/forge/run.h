// SPDX-License-Identifier: Apache-2.0
//
// A run of the forge: draws tasks, verifies them and their kernels, writes the data sets.
//
// Work is cut into chunks of chunk_tasks() tasks.  What a chunk gives depends on the settings and
// its number alone; it is in OUT/store.sqlite as soon as it is done, so a run that was stopped goes
// on where it was, and any number of threads gives the same bytes.  At the end the chunks are put
// together, in order, until the tasks that were asked for are there.
#ifndef MC_FORGE_RUN_H_
#define MC_FORGE_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"
#include "forge/draw.h"
#include "forge/kernels.h"
#include "forge/library.h"
#include "forge/mix.h"

namespace mc::forge {

struct Settings {
  uint64_t seed = 0;
  int tasks = 100;
  DrawOptions draw;
  int solutions_max = static_cast<int>(kSolutionsMax);  // Solutions of a task, at most.
  double test_share = 0.1;
  double bugs_share = 0;      // The part of tasks for training with reviews and repairs.
  double lessons_share = 0;   // The same with a question.
  double variants_share = 0;  // The same with variants (variants.h), which need full style.
  bool unit_tests = false;    // unit_tests.jsonl is written too (unit_tests.h).
  Weights weights;            // Families are drawn by these; empty: as the operators have it.
};

// The tasks of a chunk: its kernels are compiled as one unit, so their number is about the same.
inline int chunk_tasks(const Settings& settings) {
  return 12 * static_cast<int>(kSolutionsMax) / settings.solutions_max;
}

// Dialects that the rows of the data sets are written in.
enum class Dialects { kCuda, kMusa, kBoth };

struct RunOptions {
  Settings settings;
  const Library* library = nullptr;     // Outlives the run.
  Dialects dialects = Dialects::kCuda;  // Chunks are the same for all.
  std::filesystem::path out;
  int jobs = 1;
  double audit_share = 0;  // Share of the solutions that MooreEval prepares and judges as well.
  std::filesystem::path timings;  // A run of bench with measured answers; "" for none.
  int64_t samples = 0;            // Rows of sft.jsonl at which a run ends; 0: by its tasks.
  std::string mix;                // The origin of the weights, for forge.json; "" for none.
};

struct Progress {
  int tasks = 0;
  int solutions = 0;
  int64_t rows = 0;  // Samples for supervised training, in one dialect.
};

// Counts by name, as in forge.json.
using Counts = std::map<std::string, int64_t>;

// kInvalidInput where OUT holds a run with other settings.
Result<Counts> run(const RunOptions& options, const std::function<void(std::string_view)>& note,
                   const std::function<void(const Progress&)>& progress);

}  // namespace mc::forge

#endif  // MC_FORGE_RUN_H_
