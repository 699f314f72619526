// SPDX-License-Identifier: Apache-2.0
//
// Course: asks for answers and has them judged, until each sample has passed or has had its turns.
//
// All that it learns is kept in the run of a store as it comes, and a course takes up what an
// earlier one left there: an answer that is stored is not asked for again, a verdict that is stored
// is not reached again.  A verdict of `infra` is the exception: its answer is judged once more.
// Equal answers to one task are judged once, and each has the verdict.
//
//   Course course(run, items, {.samples = 3, .turns = 2}, observer);
//   MC_TRY(CourseEnd end, course.run(&sampler, *pipeline), "bench");
#ifndef MC_BENCH_COURSE_H_
#define MC_BENCH_COURSE_H_

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

struct CourseOptions {
  int64_t samples = 1;              // Samples of each task.
  int64_t turns = 1;                // At most; a sample ends with its first pass.
  bool goes_on_after_pass = false;  // True: a sample goes on, and is asked for a faster kernel.
  int64_t feedback_tokens = 2000;
  int askers = 4;  // Requests at once, where the sampler takes one at a time.
  int judges = 2;
  int64_t failures_max = 0;  // Requests without an answer that end the run; 0: none do.
  // True once no more answers are wanted; those that were asked for are still judged.  Called by
  // one thread at a time, before each request and after each verdict.  Empty: never.
  std::function<bool()> is_enough{};
};

// The state of a course, for a display.
struct CourseProgress {
  int64_t num_answers = 0;   // Stored answers.
  int64_t num_verdicts = 0;  // Stored verdicts.
  int64_t num_failed = 0;    // Requests without an answer, in this run.
  int64_t num_asked = 0;     // Answers that are still to come, of what can be asked for now.
  int64_t num_sampling = 0;  // The requests among them that are open.
  int64_t num_waiting = 0;   // Answers that have no verdict now.
  // The verdict that is being reported, during the observer's call; null where none is.
  const store::Judgement* judgement = nullptr;
};

// The work that is left at the beginning; later turns come on top.
struct CoursePlan {
  size_t num_to_ask = 0;
  size_t num_to_judge = 0;
  int64_t num_judged = 0;  // The verdicts that are there.
};

struct CourseEnd {
  std::map<std::string, int64_t> failed;  // Requests without an answer, by the reason.
  std::optional<Error> last_failure;
};

class Course {
 public:
  using Observer = std::function<void(const CourseProgress& progress)>;
  // REQUIRES: all references outlive the course.  `observer` is called by one thread at a time.
  Course(store::Run& run, const std::vector<sample::Item>& items, const CourseOptions& options,
         Observer observer);

  // The work that is left.  Without a sampler the stored answers alone are judged.
  Result<CoursePlan> plan(Sampler* sampler) const;
  // The first error of the store, of the sampler as a whole or of `open` ends it; what was reached
  // is kept.  `open` is called by several threads, before each answer is judged: an endpoint that
  // answers nothing is reported before a pipeline is made.
  using OpenEvaluator = std::function<Result<task::Evaluator*>()>;
  Result<CourseEnd> run(Sampler* sampler, const OpenEvaluator& open) const;
  Result<CourseEnd> run(Sampler* sampler, task::Evaluator& evaluator) const;

 private:
  class State;
  store::Run& run_;
  const std::vector<sample::Item>& items_;
  const CourseOptions options_;
  const Observer observer_;
};

}  // namespace mc::bench

#endif  // MC_BENCH_COURSE_H_
