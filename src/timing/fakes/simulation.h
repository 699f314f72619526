// SPDX-License-Identifier: Apache-2.0
//
// For tests: timing simulated without a device.  A judge and two timed processes are fake workers:
// they answer timing's questions as harness/timing/fresh_inputs.py and
// harness/contestant/batches.py do, and use the control page as device/gate.cc does, but compute
// nothing.  What a device would do takes time of a clock that all of them share, to the microsecond
// what the behavior says.
//
//   Simulation simulation({.candidate = {.call_us = 50}});
//   ComparisonRun run(simulation.judge(), limits, {.clock = simulation.clock()}, nullptr);
//   run.warm_up(simulation.candidate(), simulation.baseline());
//   EXPECT_THAT(simulation.records("judge", "close"), SizeIs(0));
#ifndef MC_TIMING_FAKES_SIMULATION_H_
#define MC_TIMING_FAKES_SIMULATION_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "execute/children.h"
#include "execute/executor.h"
#include "worker/fakes/fake_worker.h"

namespace mc::timing {

using execute::Judge;
using execute::Session;
using worker::FakeWorker;

// Of a process's batches, or of copies; the first one is 1.
struct NumberRange {
  uint32_t first = 1;
  uint32_t last = std::numeric_limits<uint32_t>::max();
  bool has(uint32_t number) const { return first <= number && number <= last; }
};
inline constexpr NumberRange kAlways{};
inline constexpr NumberRange kNever{1, 0};
constexpr NumberRange only(uint32_t number) { return {number, number}; }
constexpr NumberRange since(uint32_t number) { return {.first = number}; }

// How a process ends.
struct Ending {
  enum class Kind { kNone, kDies, kHangs, kRefuses };
  static constexpr int kExitCode = 3;  // Of one that dies.
  Kind kind = Kind::kNone;
  std::string at = "finish";  // Which question, or "enqueue", "attach": it answers none of it.
  uint32_t number = 1;        // Of the batch.
};

struct ProcessBehavior {
  double call_us = 100;       // On the device,
  double share_claimed = 1;   // so much of which is what the events say.
  double enqueue_us = 0;      // Of the host, a call.
  int launches = 1;           // A call; traced, each is a kernel that lasts as long as the others,
  double share_traced = 1;    // if it takes so much longer to be traced.
  NumberRange idle = kNever;  // Which batches have a call that launches nothing.
  NumberRange blocks = kNever;  // Which batches are not enqueued before the gate opens;
  int64_t calls_queued_max = std::numeric_limits<int64_t>::max();  // those that are longer, too.
  NumberRange slow = kNever;                                       // Which batches take longer,
  double slow_call_us = 0;                                         // by so much a call.
  std::string kernel = "kernel";  // Its name, and the library that it is of.
  std::string owner = "owner.so";
  NumberRange odd = kNever;  // Which batches tell the outputs of `odd_calls` more calls.
  int64_t odd_calls = 0;
  bool begins_early = false;  // Before a gate is opened, as all its traces tell.
  Ending ending{};
};

struct JudgeBehavior {
  double inputs_bytes = 1 << 20;  // Of a call.
  double outputs_bytes = 1 << 20;
  std::vector<double> free_bytes = {1e12};  // As each question finds it; the last one's stays.
  double total_bytes = 0;
  std::vector<double> fill_gbs = {1e3};  // As `free_bytes`: how fast memory is filled.
  NumberRange wrong = kNever;            // Which copies of the candidate's outputs are wrong.
  double copy_us = 0;                    // How long copying takes.
  double replace_us = 0;                 // How long it takes to replace inputs,
  bool ignored = false;                  // which no output of the candidate's shows.
};

struct Behaviors {
  JudgeBehavior judge{};
  ProcessBehavior candidate{};
  ProcessBehavior baseline{};
  ProcessBehavior compiled{};  // The baseline by torch.compile.
};

// Something that a process was asked, or that a process did: "run" is a batch, noted as the gate
// opens.
struct Record {
  std::string who{};  // "judge", "candidate", "baseline".
  std::string what{};
  std::string process{};  // Of the judge's: for whom.
  int64_t number = 0;     // Of the batch.
  int64_t calls = 0;
  int64_t nbytes = 0;
  std::vector<int64_t> picks{};  // Whose outputs; or whose inputs are replaced.
  int64_t late = 0;              // How many of them had late inputs.
  bool enqueued = false;
  bool traced = false;
  bool early = false;   // The gate was open before the process was ready.
  bool beside = false;  // While the other process stood still.
};

class Simulation {
 public:
  explicit Simulation(const Behaviors& behaviors);

  Clock clock() const { return time_.clock(); }
  Judge& judge() { return judge_; }
  Session& candidate() { return candidate_; }
  Session& baseline() { return baseline_; }
  // The same as processes to be started, any number of each.
  FakeWorker& judges() { return judges_; }
  FakeWorker& candidates() { return candidates_; }
  FakeWorker& baselines() { return baselines_; }
  FakeWorker& compiled() { return compiled_; }

  // What has happened so far, in order; and of it what one process did.
  const std::vector<Record>& records() const { return *records_; }
  std::vector<Record> records(std::string_view who, std::string_view what) const;

 private:
  worker::FakeTime time_;
  // Owners: this and the behaviors of all.
  std::shared_ptr<std::vector<Record>> records_ = std::make_shared<std::vector<Record>>();
  FakeWorker judges_{time_};
  FakeWorker candidates_{time_};
  FakeWorker baselines_{time_};
  FakeWorker compiled_{time_};
  Judge judge_;
  Session candidate_;
  Session baseline_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_FAKES_SIMULATION_H_
