// SPDX-License-Identifier: Apache-2.0
//
// For tests: all that timing asks, as fake workers (worker/fakes/fake_worker.h).  A call takes what
// the fields say, on a clock that all of them share; the judge finds all right until a test says
// otherwise.
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
  double eager_us = 20;  // The judge's.
  double compiled_us = 15;
  std::vector<double> host_us;  // The checked calls', in each batch.
  int64_t queued_whole = 1000;  // At most, in a gated batch.
  int64_t launches_own = 2;     // A call's.
  int64_t long_calls = 0;       // A batch's.
  std::vector<worker::Kernel> kernels{{.name = "kernel", .owner = "", .launches = 1, .us = 8}};
  worker::JudgeTimePlanAnswer plan{.inputs_bytes = 512,
                                   .outputs_bytes = 512,
                                   .operations = 1,
                                   .written = {1},
                                   .draws_again = true};
  std::string problem;  // Every output's.

  // ---- The events so far.
  // The calls whose outputs the judge compared.
  std::vector<int64_t> checked;
  std::vector<int64_t> drawn;               // The number of each batch whose inputs were drawn.
  std::vector<int64_t> drawn_when_checked;  // The last of these at each comparison.
  // Three for each batch that a device process began.
  std::vector<int64_t> calls;
  std::vector<bool> gated;
  std::vector<bool> itemised;
  int64_t memory_bytes = int64_t{4} << 20;  // The candidate's; the baseline has twice as much.
  // The number of calls that there was room for, each time.
  std::vector<int64_t> room;
  // One for each of the eager baseline's batches.
  std::vector<bool> baseline_gated;
  int64_t num_speeds = 0;
};

}  // namespace mc::timing

#endif  // MC_TIMING_FAKES_TIMED_FAKES_H_
