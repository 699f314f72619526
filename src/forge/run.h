// SPDX-License-Identifier: Apache-2.0
//
// A run of the forge: draws tasks, verifies them and their kernels, and writes the data sets.
//
// The work is divided into chunks of chunk_tasks() tasks.  The content of a chunk depends only on
// the settings and its number.  It is stored in OUT/store.sqlite when it is complete, so a stopped
// run resumes, and any number of threads gives the same bytes.  At the end the chunks are
// concatenated in order, until there are as many tasks as requested.
#ifndef MC_FORGE_RUN_H_
#define MC_FORGE_RUN_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/result.h"
#include "forge/kernels.h"
#include "forge/library.h"
#include "forge/mix.h"
#include "forge/sample_graph.h"

namespace mc::forge {

struct Settings {
  uint64_t seed = 0;
  int tasks = 100;
  GraphOptions graph;
  // The maximum number of solutions of a task.
  int solutions_max = static_cast<int>(kSolutionsMax);
  double test_share = 0.1;
  double bugs_share = 0;      // The part of tasks for training with reviews and repairs.
  double lessons_share = 0;   // The same with a question.
  double variants_share = 0;  // The same with variants (variants.h), which need full style.
  bool unit_tests = false;    // unit_tests.jsonl is written too (unit_tests.h).
  Weights weights;            // Families are drawn by these; empty: as the operators have it.
};

// The version of the chunks that the same settings give.  It rises with each change of a chunk's
// bytes (chunk_test.cc), so that no run resumes with chunks of two kinds.
inline constexpr int kChunksVersion = 12;

// The settings as JSON, which must be equal for a run to resume.
std::string settings_text(const Settings& settings);

// The number of tasks in a chunk.  The kernels of a chunk are compiled as one unit, so their number
// should not depend on solutions_max.
inline int chunk_tasks(const Settings& settings) {
  return 12 * static_cast<int>(kSolutionsMax) / settings.solutions_max;
}

// The dialects of the rows in the data sets.
enum class Dialects { kCuda, kMusa, kBoth };

struct RunOptions {
  Settings settings;
  const Library* library = nullptr;     // The library must outlive the run.
  Dialects dialects = Dialects::kCuda;  // The chunks do not depend on it.
  std::filesystem::path out;
  int jobs = 1;
  // The share of solutions that MooreEval also prepares and judges, as a check of the forge.
  double audit_share = 0;
  std::filesystem::path timings;  // A run of bench with measured answers; "" if there is none.
  // The run ends at this number of rows in sft.jsonl; 0: it ends by its number of tasks.
  int64_t samples = 0;
  std::string mix;  // The origin of the weights, for forge.json; "" if there is none.
};

struct Progress {
  int tasks = 0;
  int solutions = 0;
  int64_t rows = 0;  // Samples for supervised training, counted in one dialect.
};

// Counts by name, as written to forge.json.
using Counts = std::map<std::string, int64_t>;

// kInvalidInput if OUT contains a run with other settings.
Result<Counts> run(const RunOptions& options, const std::function<void(std::string_view)>& note,
                   const std::function<void(const Progress&)>& progress);

}  // namespace mc::forge

#endif  // MC_FORGE_RUN_H_
