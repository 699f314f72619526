// SPDX-License-Identifier: Apache-2.0
//
// For tests: a comparison played with a simulation (fakes/simulation.h).  With `steady()` all
// batches are numbered in advance: a process's first three warm it up (host-synchronous; the same,
// traced; enqueued), two more measure it out, those that count begin at the sixth; one of the
// baseline's is traced somewhere among these.
#ifndef MC_TIMING_TEST_TIMED_H_
#define MC_TIMING_TEST_TIMED_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "timing/comparison_run.h"
#include "timing/fakes/simulation.h"

namespace mc::timing {

inline constexpr int kCalls = 8;
inline constexpr int kPairs = 5;
inline constexpr uint32_t kWarmUp = 3;
inline constexpr uint32_t kBefore = 5;  // Batches before those that count.
inline constexpr uint32_t kMiddle = kBefore + 3;
inline constexpr double kNoLimit = 1e9;

// Batches of so many calls and pairs, however slow the machine is, and whatever a clock says.
RunOptions steady();
StageLimits limits();

Stage<Timed> play(Simulation& simulation, const RunOptions& options,
                  const StageLimits& stage_limits = limits());

// What was timed; a default where nothing was, which fails the test.
Timed timed(Simulation& simulation, const RunOptions& options);

// What was decided; the default where nothing was.
task::Outcome decided(Simulation& simulation, const StageLimits& stage_limits = limits());

std::vector<Record> runs(const Simulation& simulation, std::string_view who);
std::vector<int64_t> calls_of(const std::vector<Record>& records);
int64_t num_traced(const std::vector<Record>& records);
int64_t num_enqueued(const std::vector<Record>& records);

}  // namespace mc::timing

#endif  // MC_TIMING_TEST_TIMED_H_
