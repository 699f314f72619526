// SPDX-License-Identifier: Apache-2.0
//
// SamplingLoop: the sampling loop of a run.  It requests answers and has them judged, until each
// sample has passed or has used all its turns.
//
// Each answer and verdict is stored in the run as it arrives.  A loop resumes from the store: it
// does not request a stored answer again, and does not repeat a stored verdict unless it is
// `infra`. Equal answers to one task are judged once, and share the verdict.
//
//   SamplingLoop loop(run, items, {.samples = 3, .turns = 2}, observer);
//   MC_TRY(SamplingEnd end, loop.run(&sampler, *pipeline), "bench");
#ifndef MC_BENCH_SAMPLING_LOOP_H_
#define MC_BENCH_SAMPLING_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/sampler.h"
#include "core/result.h"
#include "sample/suite.h"
#include "store/store.h"
#include "task/evaluator.h"

namespace mc::bench {

struct SamplingOptions {
  int64_t samples = 1;  // The number of samples for each task.
  int64_t turns = 1;    // The maximum number of turns of a sample; a sample ends at its first pass.
  bool goes_on_after_pass = false;  // True: after a pass, further turns request a faster kernel.
  int64_t feedback_tokens = 2000;
  // The number of concurrent requests, if the sampler takes one request at a time.
  int concurrency = 4;
  int judges = 2;
  // The run ends after this many requests without an answer; 0: no limit.
  int64_t failures_max = 0;
  // Returns true when no more answers are wanted; answers that were already requested are still
  // judged. Called by one thread at a time, before each request and after each verdict.  Empty:
  // never true.
  std::function<bool()> is_enough{};
};

// The state of a loop, for a progress display.
struct SamplingProgress {
  int64_t num_answers = 0;   // Stored answers.
  int64_t num_verdicts = 0;  // Stored verdicts.
  int64_t num_failed = 0;    // Requests of this run that got no answer.
  // Answers that are not yet received: open requests, and requests that can already be made.
  int64_t num_asked = 0;
  int64_t num_sampling = 0;  // Open requests.
  int64_t num_waiting = 0;   // Answers that are stored without a verdict.
  // The new verdict that this call of the observer reports, or null.
  const store::Judgement* judgement = nullptr;
};

// The work that is left at the beginning, without the turns that will follow.
struct SamplingPlan {
  size_t num_to_ask = 0;
  size_t num_to_judge = 0;
  int64_t num_judged = 0;  // The number of verdicts that are already stored.
};

struct SamplingEnd {
  // The number of requests without an answer, for each reason.
  std::map<std::string, int64_t> failed;
  std::optional<Error> last_failure;
};

class SamplingLoop {
 public:
  using Observer = std::function<void(const SamplingProgress& progress)>;
  // REQUIRES: all references outlive the loop.  `observer` is called by one thread at a time.
  SamplingLoop(store::Run& run, const std::vector<sample::Item>& items,
               const SamplingOptions& options, Observer observer);

  // The work that is left.  Without a sampler, only stored answers are judged.
  Result<SamplingPlan> plan(Sampler* sampler) const;
  // Runs the loop.  The first error of the store, of `open`, or of the sampler as a whole ends it;
  // stored records remain.  `open` is called before each answer is judged, by several threads.  It
  // is not called before the first answer, so an endpoint that does not answer is reported before
  // an evaluator is created.
  using OpenEvaluator = std::function<Result<task::Evaluator*>()>;
  Result<SamplingEnd> run(Sampler* sampler, const OpenEvaluator& open) const;
  Result<SamplingEnd> run(Sampler* sampler, task::Evaluator& evaluator) const;

 private:
  class State;
  store::Run& run_;
  const std::vector<sample::Item>& items_;
  const SamplingOptions options_;
  const Observer observer_;
};

}  // namespace mc::bench

#endif  // MC_BENCH_SAMPLING_LOOP_H_
