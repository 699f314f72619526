// SPDX-License-Identifier: Apache-2.0
//
// The progress of a run: counts by stage, the pass rate so far and the remaining time, as a line of
// text for people and as events for programs.  The functions are pure.
//
// An event is one JSON object in one line, with the members `event`, `version` and `run`.  The
// events and their other members:
//
// - `sample`, at each new verdict: `task`, `sample`, `turn`, `outcome`, `q`, `reward`, `seconds`,
//   `speedup` (`value`, `low`, `high`, `uncertain`; null without timing), `phrase`.
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

#include "bench/sampling_loop.h"
#include "report/bench.h"
#include "store/records.h"

namespace mc::bench {

inline constexpr int kEventVersion = 1;

// The mean over tasks of the share of samples that pass, over complete samples; for a complete run
// it equals `average` in summary.json.  A failed answer that another turn will follow is not
// counted yet.
class PassRate {
 public:
  explicit PassRate(int64_t turns = 1) : turns_(turns) {}
  void add(const store::Judgement& judgement);
  // Empty as long as no sample is scored.
  std::optional<report::Figure> figure() const;

 private:
  int64_t turns_;  // The maximum number of turns of a sample.
  // True for a sample that passes.  The keys are task and sample; only scored samples are in the
  // map.
  std::map<std::string, std::map<int64_t, bool>> passes_;
};

struct LiveState {
  SamplingProgress loop;
  int64_t num_before = 0;     // Verdicts of earlier commands, which `loop` counts too.
  int64_t num_preparing = 0;  // Answers that are being compiled.
  int64_t num_measuring = 0;  // Answers that are being compared with the reference.
  std::optional<report::Figure> pass_rate;
  double elapsed_s = 0;
};

// The work of this command: the completed part, and the total that is known so far.
struct LiveWork {
  int64_t done = 0;
  int64_t total = 0;
};
LiveWork work_of(const LiveState& state);

// The progress as a line: "pass 71.7 % [59.2, 81.5], sampling 4, preparing 1, measuring 1, judged
// 12".
std::string line_of(const LiveState& state);

// The JSON line of an event, with a line break.
std::string sample_event(const std::string& run, const store::Judgement& judgement);
std::string progress_event(const std::string& run, const LiveState& state);
// `members` is a JSON object; its members are added to the event.
std::string end_event(const std::string& run, const std::string& members);
std::string failure_event(const std::string& run, const std::string& message);

}  // namespace mc::bench

#endif  // MC_BENCH_LIVE_H_
