// SPDX-License-Identifier: Apache-2.0
//
// A run while it goes on: counts of its stages, the pass rate so far and the time left, as a line
// for people and as events for programs.  Pure.
//
// An event is one JSON object in one line, with the members `event`, `version` and `run`. Others:
//
// - `sample`, at each new verdict: `task`, `sample`, `turn`, `outcome`, `q`, `reward`, `seconds`,
//   `speedup` (`value`, `low`, `high`, `uncertain`; null where nothing was timed), `phrase`.
// - `progress`, at the beginning, at changes once a second, at the end: `elapsed_s`; `left_s`, null
//   before the first verdict; counts `queued`, `sampling`, `waiting` (to be judged), `preparing`,
//   `measuring`, `judged`, `failed` (requests without an answer); `pass_rate` (`value`, `low`,
//   `high`, `tasks`), null before anything is scored.
// - `end`, once for each run: `summary`, as in summary.json; or `error`, the message that ended the
//   command.  `optimize` has `winner` (its key, or null) and `module`, the path of the module.
#ifndef MC_BENCH_LIVE_H_
#define MC_BENCH_LIVE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "bench/course.h"
#include "report/bench.h"
#include "store/records.h"

namespace mc::bench {

inline constexpr int kEventVersion = 1;

// The mean over tasks of the share of samples that pass, of those that are at their end: of a
// complete run it is `average` of summary.json.  A failed answer that another turn is to follow
// says nothing yet.
class PassRate {
 public:
  explicit PassRate(int64_t turns = 1) : turns_(turns) {}
  void add(const store::Judgement& judgement);
  // Empty while no sample is scored.
  std::optional<report::Figure> figure() const;

 private:
  int64_t turns_;  // The most turns of a sample.
  // True for a sample that passes.  The keys are task and sample; only scored samples are there.
  std::map<std::string, std::map<int64_t, bool>> passes_;
};

struct LiveState {
  CourseProgress course;
  int64_t num_before = 0;     // Verdicts of earlier commands, which are among the course's.
  int64_t num_preparing = 0;  // Answers that are being compiled now.
  int64_t num_measuring = 0;  // Answers that run beside the reference now.
  std::optional<report::Figure> pass_rate;
  double elapsed_s = 0;
};

// The work of this command: what is done, and all that is known of so far.
struct LiveWork {
  int64_t done = 0;
  int64_t total = 0;
};
LiveWork work_of(const LiveState& state);

// "pass 71.7 % [59.2, 81.5], sampling 4, preparing 1, measuring 1, judged 12".
std::string line_of(const LiveState& state);

// The lines of events; each ends in a newline.
std::string sample_event(const std::string& run, const store::Judgement& judgement);
std::string progress_event(const std::string& run, const LiveState& state);
// `members` is a JSON object, whose members the event has as well.
std::string end_event(const std::string& run, const std::string& members);
std::string failure_event(const std::string& run, const std::string& message);

}  // namespace mc::bench

#endif  // MC_BENCH_LIVE_H_
