// SPDX-License-Identifier: Apache-2.0
//
// Figures of a benchmark: those of report/bench.h over the records of a run in a store.
#ifndef MC_BENCH_FIGURES_H_
#define MC_BENCH_FIGURES_H_

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "report/bench.h"
#include "store/store.h"

namespace mc::bench {

// A run, read whole.
struct RunData {
  store::RunRecord record;
  std::vector<store::TaskRecord> tasks;
  std::vector<store::Answer> answers;
  std::vector<store::Judgement> judgements;
  std::string prices;  // A JSON list: dollars for a million tokens of prompts, of answers; or "".
};
// The name of `prices` among the texts of a run.
inline constexpr const char* kPricesName = "prices";
Result<RunData> read_run(const store::Run& run);

// How far a run is, in samples.  Those that it is to have are the settings' number for each task;
// of stored answers they are what there is, and one for each task without any.
struct Coverage {
  int64_t num_wanted = 0;
  int64_t num_judged = 0;     // Each answer has a verdict, and no other turn is to come.
  int64_t num_missing = 0;    // Without an answer.
  bool is_generated = false;  // A model answers: what is left can still be made.
  bool operator==(const Coverage&) const = default;
};
Coverage coverage_of(const RunData& data);

// The place in the figures of a sample that is not at its end: it counts as failed, or in none.
enum class Missing { kFailed, kLeftOut };

// A line without an end: what is left of a run, and how it counts; "" for a run that is complete.
std::string coverage_text(const Coverage& coverage, Missing missing);

// The verdicts, and what `missing` makes of the samples that are not at their end.
std::vector<report::Attempt> attempts_of(const RunData& data, Missing missing);

// A row for all tasks, then one for each level and each family.
std::vector<report::BenchRow> rows_of(const RunData& data, Missing missing);

// The keys, task and sample, of samples that have an answer and wait for a verdict or a turn.
std::set<std::pair<std::string, int64_t>> pending_of(const RunData& data);

}  // namespace mc::bench

#endif  // MC_BENCH_FIGURES_H_
