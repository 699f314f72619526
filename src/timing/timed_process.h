// SPDX-License-Identifier: Apache-2.0
//
// TimedArm: one of the processes whose calls are timed by turns, a candidate's or a baseline's.
//
// A burst is queued behind a gate; then the judge writes inputs that nobody has seen; then the gate
// opens and the supervisor's clock runs until everything on the device is done.  A forward that
// waits for the device blocks while it is queued: the gate opens early, that burst does not count,
// and from then on its bursts are open (harness/contestant/bursts.py).  docs/timing.md has the
// whole protocol.
#ifndef MC_TIMING_TIMED_PROCESS_H_
#define MC_TIMING_TIMED_PROCESS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "core/hash.h"
#include "core/result.h"
#include "execute/executor.h"
#include "timing/control_page.h"
#include "timing/traced_batch.h"

namespace mc::timing {

using execute::Answer;
using execute::Judge;
using execute::Reply;
using execute::Session;
using execute::Stage;
using execute::StageLimits;

struct BurstTime {
  int calls = 1;
  double events_us = 0;   // Between the burst's two events on the device, as the process says.
  double queue_us = 0;    // By the supervisor's clock, until the burst was queued; 0 if it is open.
  double bracket_us = 0;  // By the supervisor's clock.
  double looked_us = 0;   // The same, until outputs were copied; 0 where none were.
  bool is_valid = false;  // Not one that blocked as it was queued.
  int64_t launches = 0;   // Of kernels and graphs, and
  int64_t launches_own = 0;  // those that are not known to be another's.
  double busy_us = 0;        // If it was traced: in which anything ran.
  // Where outputs lie, JSON for the judge (harness/worker/output_places.py): their forms, and each
  // call's place.
  std::string forms = "[]";
  std::vector<std::string> places;
  std::vector<TracedKernel> kernels;
};

class TimedArm {
 public:
  struct Room {
    int calls = 1;
    int64_t arena_bytes = 0;
  };
  struct Wanted {
    int calls = 1;
    bool traced = false;
    int looks = 0;  // At outputs: those of the last call, and of others chosen when all is over.
  };

  // REQUIRES: judge, session and limits outlive it.
  static Stage<TimedArm> create(std::string name, Judge& judge, Session& session,
                                const StageLimits& limits);

  // Fresh memory for inputs and outputs of so many calls.  Decides the outcome where the process
  // fails; an Error is the judge's failure.
  Stage<Nothing> prepare(const Room& room);
  Stage<BurstTime> burst(const Wanted& wanted);

  // The judge's opinion on the outputs of the last burst that were looked at; "" when they are
  // right.
  Result<std::string> verify();

  // Its process stands still until the next burst.
  void rest() { session_.rest(); }

  bool is_gated() const { return gated_; }
  void set_gated(bool gated) { gated_ = gated; }

 private:
  TimedArm(std::string name, Judge& judge, Session& session, const StageLimits& limits,
           ClockPage page)
      : name_(std::move(name)),
        judge_(judge),
        session_(session),
        limits_(limits),
        page_(std::move(page)) {}
  Stage<Reply> ask(const std::string& question, const Fd* region);
  Stage<Reply> outcome_of(Answer answer);
  Stage<BurstTime> garbled(const Error& error) const;
  Stage<Reply> receive_queued(uint32_t number, BurstTime& burst);
  Status look(const BurstTime& answer, int looks, BurstTime& burst);
  void time_bracket(uint32_t number, BurstTime& burst);

  std::string name_;
  Judge& judge_;
  Session& session_;
  const StageLimits& limits_;
  ClockPage page_;
  bool gated_ = true;
  uint32_t number_ = 0;                           // Of the last burst,
  std::chrono::steady_clock::time_point opened_;  // whose gate was opened then.
  std::mt19937_64 random_{random_seed()};
};

// What a burst's answer says; a protocol error for what it cannot say.
Result<BurstTime> decode_burst(std::string_view answer);

}  // namespace mc::timing

#endif  // MC_TIMING_TIMED_PROCESS_H_
