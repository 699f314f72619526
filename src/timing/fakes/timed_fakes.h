// SPDX-License-Identifier: Apache-2.0
//
// For tests: the processes that timing uses, as fake workers (worker/fakes/fake_worker.h).  The
// fields determine the times of calls, on a clock that all workers share; the judge finds
// everything right unless a test configures it otherwise.
//
//   TimedFakes fakes;
//   fakes.own_us = 10;
//   CallComparison comparison(judge, fakes.candidate(), fakes.baseline(), ...);
#ifndef MC_TIMING_FAKES_TIMED_FAKES_H_
#define MC_TIMING_FAKES_TIMED_FAKES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/fakes/fake_worker.h"

namespace mc::timing {

class TimedFakes {
 public:
  TimedFakes();
  TimedFakes(const TimedFakes&) = delete;
  TimedFakes& operator=(const TimedFakes&) = delete;

  worker::FakeTime time;
  worker::FakeWorker judges{time};
  worker::FakeWorker candidates{time};
  worker::FakeWorker devices{time};
  worker::FakeWorker compiled{time};  // Compiled baselines.

  double own_us = 10;
  double eager_us = 20;  // The time of the judge's reference.
  double compiled_us = 15;
  std::vector<double> host_us;  // The host-clock times of the checked calls in each batch.
  int64_t queued_whole = 1000;  // The most calls that are queued whole in a gated batch.
  int64_t launches_own = 2;     // In each call.
  int64_t long_calls = 0;       // In each batch.
  std::vector<worker::Kernel> kernels{{.name = "kernel", .owner = "", .launches = 1, .us = 8}};
  worker::JudgeTimePlanResponse plan{.inputs_bytes = 512,
                                     .outputs_bytes = 512,
                                     .operations = 1,
                                     .written = {1},
                                     .draws_again = true};
  std::string problem;  // The problem of every output; "" where all are right.

  // ---- The events so far.
  // The calls whose outputs the judge compared.
  std::vector<int64_t> checked;
  std::vector<int64_t> generated;           // The number of each batch with generated inputs.
  std::vector<int64_t> drawn_when_checked;  // The last element of `generated` at each comparison.
  // One element of each for every batch that a device process started.
  std::vector<int64_t> calls;
  std::vector<bool> gated;
  std::vector<bool> itemised;
  // The candidate's memory; the baseline uses twice as much.
  int64_t memory_bytes = int64_t{4} << 20;
  // The number of calls in each request for memory.
  std::vector<int64_t> room;
  // One element for each batch of the eager baseline.
  std::vector<bool> baseline_gated;
  int64_t num_speeds = 0;
};

}  // namespace mc::timing

#endif  // MC_TIMING_FAKES_TIMED_FAKES_H_
