// SPDX-License-Identifier: Apache-2.0
//
// TimedProcess: one of the two processes that are timed by turns, a candidate's or a baseline's.
//
// A batch is enqueued behind a gate; then the judge publishes inputs that nobody has seen; then the
// gate opens, and the supervisor's clock runs until everything on the device is done.  A forward
// that waits for the device blocks as it is enqueued: the gate opens early, that batch does not
// count, and from then on its batches are host-synchronous: run after the gate was opened
// (harness/contestant/batches.py).  docs/timing.md has the whole protocol.
#ifndef MC_TIMING_TIMED_PROCESS_H_
#define MC_TIMING_TIMED_PROCESS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/clock.h"
#include "core/hash.h"
#include "core/result.h"
#include "execute/executor.h"
#include "timing/control_page.h"
#include "timing/late_inputs.h"
#include "timing/traced_batch.h"
#include "worker/protocol.h"

namespace mc::timing {

using execute::Answer;
using execute::Judge;
using execute::Reply;
using execute::Session;
using execute::Stage;
using execute::StageLimits;

// Times are by the supervisor's clock.
struct Batch {
  int calls = 1;
  bool is_valid = false;     // Not one that blocked as it was enqueued.
  double enqueue_us = 0;     // Until it was enqueued; 0 if it is host-synchronous.
  double done_us = 0;        // From the gate's opening until the process said that all is done,
  double copied_us = 0;      // until the judge had copied outputs; 0 where it copied none.
  int64_t launches = 0;      // Of kernels and graphs, and
  int64_t launches_own = 0;  // those that are not known to be another's.
  // As the process says:
  double events_us = 0;  // Between the batch's two events on the device.
  double busy_us = 0;    // If it was traced: in which anything ran.
  // Where outputs lie, for the judge (harness/worker/output_places.py): their forms, and each
  // call's place.
  worker::BatchOutputs outputs;
  std::vector<TracedKernel> kernels;
};

// The judge's, on the outputs that it copied.
struct Opinion {
  std::string problem;  // "" where they are right.
  LateCount late;
};

class TimedProcess {
 public:
  struct Room {
    int calls = 1;
    int64_t arena_bytes = 0;
  };
  struct Wanted {
    int calls = 1;
    bool traced = false;
    bool late = false;  // Some calls get other inputs once the batch has begun.
    int snapshots = 0;  // Of outputs: of the last call, and of others chosen when all is over.
  };

  // REQUIRES: judge, session, limits and clock outlive it.
  static Stage<TimedProcess> create(std::string name, Judge& judge, Session& session,
                                    const StageLimits& limits, const Clock& clock);

  // Fresh memory for inputs and outputs of so many calls.  Decides the outcome where the process
  // fails; an Error is the judge's failure.
  Stage<Nothing> prepare(const Room& room);
  Stage<Batch> run(const Wanted& wanted);

  // Of the last batch.  REQUIRES: it had snapshots.
  Result<Opinion> verify();

  // Its process stands still until the next batch.
  void rest() { session_.rest(); }

  bool is_enqueued() const { return is_enqueued_; }
  void set_enqueued(bool enqueued) { is_enqueued_ = enqueued; }

 private:
  TimedProcess(std::string name, Judge& judge, Session& session, const StageLimits& limits,
               const Clock& clock, ControlPage page)
      : name_(std::move(name)),
        judge_(judge),
        session_(session),
        limits_(limits),
        clock_(clock),
        page_(std::move(page)) {}
  // What the judge shares, or the page, shown to the process.
  template <typename Question>
  Stage<Nothing> attach(const Question& question, const Fd& region);
  // What the process answers to `Question`; the outcome where it ends, or says something else.
  template <typename Question>
  Stage<typename Question::Answer> said(Answer answer) const;
  template <typename Question>
  Result<worker::Told<Question>> ask_judge(const Question& question);
  task::Outcome garbled(const Error& error) const;
  Stage<Nothing> enqueue(const Wanted& wanted, Batch& batch);
  Status time_batch(Batch& batch);
  void await(const std::function<bool()>& reached);
  Status replace_inputs();
  Status snapshot_outputs(int snapshots, Batch& batch);

  std::string name_;
  Judge& judge_;
  Session& session_;
  const StageLimits& limits_;
  const Clock& clock_;
  ControlPage page_;
  bool is_enqueued_ = true;
  std::mt19937_64 random_{random_seed()};
  // Of the last batch:
  uint32_t number_ = 0;
  Clock::TimePoint opened_;    // When its gate was opened.
  std::vector<int64_t> late_;  // The calls that get late inputs,
  Replacement replacement_;    // and when they got them.
};

// Fills in what a process says of its batch: where outputs lie, and what it measured itself.  A
// protocol error for what it cannot say.
Status take_outputs(const worker::BatchOutputs& said, Batch& batch);
Status take_times(const worker::ContestantTimeFinishAnswer& said, Batch& batch);

}  // namespace mc::timing

#endif  // MC_TIMING_TIMED_PROCESS_H_
