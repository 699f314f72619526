// SPDX-License-Identifier: Apache-2.0
//
// Figures of a benchmark: those of report/bench.h over the records of a run in a store.
#ifndef MC_BENCH_FIGURES_H_
#define MC_BENCH_FIGURES_H_

#include <span>
#include <string>
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
};
Result<RunData> read_run(const store::Run& run);

std::vector<report::Attempt> attempts_of(std::span<const store::Judgement> judgements);

// Answers that are not there: of the samples of each task that the settings have; where they have
// none, as for stored answers, one for each task without any.
int64_t count_missing(const RunData& data);

// A row for all tasks, then one for each level and each family.
std::vector<report::BenchRow> rows_of(const RunData& data);

}  // namespace mc::bench

#endif  // MC_BENCH_FIGURES_H_
