// SPDX-License-Identifier: Apache-2.0
//
// The figures of a benchmark: those of report/bench.h for the records of a run in a store.
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

// All records of a run.
struct RunData {
  store::RunRecord record;
  std::vector<store::TaskRecord> tasks;
  std::vector<store::Answer> answers;
  std::vector<store::Judgement> judgements;
  // A JSON list of dollars for a million prompt tokens and answer tokens; or "".
  std::string prices;
};
// The name of `prices` among the texts of a run.
inline constexpr const char* kPricesName = "prices";
Result<RunData> read_run(const store::Run& run);

// The progress of a run, in samples.  The wanted samples are the settings' number for each task;
// for stored answers, the existing samples, and one for each task without an answer.
struct Coverage {
  int64_t num_wanted = 0;
  // Samples that are complete: each answer has a verdict, and no other turn will follow.
  int64_t num_judged = 0;
  int64_t num_missing = 0;  // Samples without an answer.
  // True if a model generates the answers, so missing ones can still be generated.
  bool is_generated = false;
  bool operator==(const Coverage&) const = default;
};
Coverage coverage_of(const RunData& data);

// The treatment of incomplete samples in the figures: counted as failed, or left out.
enum class Missing { kFailed, kLeftOut };

// A text without a line break: what is left of a run, and how it counts; "" for a complete run.
std::string coverage_text(const Coverage& coverage, Missing missing);

// The verdicts as attempts; incomplete samples are treated according to `missing`.
std::vector<report::Attempt> attempts_of(const RunData& data, Missing missing);

// One row for all tasks, then one for each level and each family.
std::vector<report::BenchRow> rows_of(const RunData& data, Missing missing);

// The keys (task, sample) of samples that have an answer and wait for a verdict or a turn.
std::set<std::pair<std::string, int64_t>> pending_of(const RunData& data);

}  // namespace mc::bench

#endif  // MC_BENCH_FIGURES_H_
