// SPDX-License-Identifier: Apache-2.0
//
// CallComparison: two contenders, timed call by call (device/cuda/timed_batch.h).
//
// While they warm up, others may use the device: a few calls of each show whether they can be
// queued whole, and what they take.  Then follow rounds, alone: a batch of calls of each, in random
// order, on the same fresh inputs; and one more call of the candidate, launch by launch.  Others
// may use the device again while outputs are compared with the reference's.
//
// A call's time is what the device's events say, in a process where none of a candidate's host code
// runs.  The calls whose outputs are compared are drawn when a batch is over; their outputs are
// copied away then, and compared later with those for the same inputs, which are drawn once more.
#ifndef MC_TIMING_CALL_COMPARISON_H_
#define MC_TIMING_CALL_COMPARISON_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "execute/executor.h"
#include "task/verdict.h"
#include "timing/device_speed.h"
#include "timing/nvml.h"

namespace mc::timing {

struct CallOptions {
  int rounds = 13;
  double round_us = 20'000;  // The slower one's calls, with what lies between them.
  int64_t batch_bytes_max = int64_t{4} << 30;  // A round's inputs and outputs.
  int verified = 2;                            // Calls of each round, drawn when it is over.
  double budget_s = 6;
  // Seconds that a batch may take, beside some times what its calls took before.
  double patience_s = 5;
  // Besides, for the first batch: kernels of Triton are compiled in their first call, and an
  // autotuner times its configurations.
  double first_s = 0;
  uint64_t seed = 0;  // It decides the order and the inputs.
  bool tf32 = false;  // The judge's reference may use it.
  Clock clock{};

  // A reward's precision.
  void make_quick() {
    rounds = 5;
    round_us = 5'000;
  }
};

// A candidate's process and the one that holds its device; or a baseline, which is believed: a
// process of its own, or the judge.
struct Contender {
  execute::Session* session = nullptr;       // Null for the judge's own reference.
  execute::DeviceProcess* device = nullptr;  // Null for a baseline.
};

// The memory of a round's calls, whose inputs are there twice and whose outputs once: at most
// `bytes_max`, unless one call alone takes more.
int64_t batch_bytes(int64_t inputs_bytes, int64_t outputs_bytes, int64_t bytes_max);

class CallComparison {
 public:
  struct Timed {
    task::Performance performance;        // Without floor, kernels and compiled baseline.
    int64_t launches_own_least = 0;       // A call's.
    int64_t calls = 0;                    // That the candidate made.
    Work work;                            // One call's.
    std::vector<worker::Kernel> kernels;  // One call's.
  };

  // REQUIRES: what it refers to outlives it.
  CallComparison(execute::Judge& judge, Contender candidate, Contender baseline,
                 const execute::StageLimits& limits, const CallOptions& options, const Nvml* nvml);
  CallComparison(const CallComparison&) = delete;
  CallComparison& operator=(const CallComparison&) = delete;
  ~CallComparison();  // Gives back what memory the judge still has for it.

  // All three decide `Wrong` where an output is wrong, and what else may happen to a running
  // candidate.  Others may use the device during warm_up() and finish(), and not during run().
  // `pause` is called between their steps; another one may then use the device alone.
  Result<std::optional<task::Outcome>> warm_up(const std::function<void()>& pause);
  // REQUIRES: warm_up() decided nothing.
  Result<std::optional<task::Outcome>> run();
  // REQUIRES: run() decided nothing.
  execute::Stage<Timed> finish(const std::function<void()>& pause);

 private:
  using EarlyOutcome = std::optional<task::Outcome>;
  struct Shared {
    worker::Tree inputs;
    int64_t stride = 0;
    int64_t nbytes = 0;
    Fd region;
    int64_t calls = 0;  // For which there is room.
  };
  struct Side {
    explicit Side(Contender who) : contender(who) {}
    Contender contender;
    int64_t address = 0;  // At which a candidate sees the inputs.
    bool is_gated = true;
    bool is_long = false;         // More commands than can wait behind a gate.
    std::vector<double> us;       // Each call that counts.
    std::vector<double> medians;  // Each round's.
    // The least of each round's by the host's clock, where any was checked by it.
    std::vector<double> host_us;
    int64_t memory_bytes = 0;  // The most of the device's that a call had.
    double call_us = std::numeric_limits<double>::infinity();  // The least batch's median.
  };
  // The outputs of a call, copied when its batch was over.
  struct Taken {
    int64_t number;  // The batch's.
    int64_t call;
    worker::Response<worker::DeviceTimeTakeQuestion> outputs;
  };
  Status close();
  Status make_room(int64_t calls);
  int64_t calls_that_fit() const;
  int64_t calls_of_round() const;
  Status draw(int64_t calls);
  Result<EarlyOutcome> run(Side& side, int64_t calls, bool is_itemised = false);
  Result<EarlyOutcome> run_candidate(Side& side, int64_t calls, bool is_itemised);
  // Takes a call's outputs, and compares them now, or in finish() where they may wait.
  Result<EarlyOutcome> verify(const Side& side, int64_t call, const worker::Tree& outputs,
                              bool may_wait);
  Result<EarlyOutcome> check(const Taken& taken);
  Result<EarlyOutcome> check_kept(const std::function<void()>& pause);
  Status draw_again(int64_t number);
  void measure_memory();
  // The driver clears memory that was freed in the background, which slows down what runs then.
  void note_freed(int64_t bytes);
  void wait_until_cleared() const;
  bool is_far_slower() const;
  Status run_baseline(Side& side, int64_t calls);
  Result<EarlyOutcome> run_pieces();
  void take(Side& side, const std::vector<double>& us, int64_t queued_whole);
  Result<EarlyOutcome> failed(const char* what, const execute::Answer& answer,
                              double limit_s) const;
  EarlyOutcome wrong_in_a_batch(const std::string& problem) const;
  double bound_us() const;
  Timed conclude() const;

  // Constant after construction.
  execute::Judge& judge_;
  const execute::StageLimits& limits_;
  CallOptions options_;
  const Nvml* nvml_;

  bool is_open_ = false;  // The judge has memory for it.
  std::mt19937_64 random_;
  worker::JudgeTimePlanAnswer plan_;
  Shared shared_;
  Clock::TimePoint cleared_at_{};  // The time when all that was freed is cleared.
  Side own_;
  Side other_;  // The baseline's.
  std::vector<worker::Kernel> kernels_;
  std::vector<std::string> notes_;
  std::vector<Taken> kept_;  // Outputs that are compared by finish().
  int64_t calls_of_round_ = 0;
  bool counts_ = false;
  int64_t number_ = 0;  // The last batch's.
  int64_t calls_ = 0;
  int64_t verified_ = 0;
  int64_t launches_own_least_ = std::numeric_limits<int64_t>::max();
  task::Clocks clocks_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_CALL_COMPARISON_H_
