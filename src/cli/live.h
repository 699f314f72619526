// SPDX-License-Identifier: Apache-2.0
//
// Live: the display of a benchmark that runs: a bar on standard error, and with --json events on
// standard output (bench/live.h).
//
//   Live live(run_name, Live::Events::kNone, verdicts_before);
//   LivePipeline evaluator(*pipeline, live);
//   Course(run, items, options, [&](const auto& progress) { live.observe(progress); })
#ifndef MC_CLI_LIVE_H_
#define MC_CLI_LIVE_H_

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/course.h"
#include "bench/live.h"
#include "cli/progress.h"
#include "eval/pipeline.h"
#include "store/records.h"
#include "task/evaluator.h"

namespace mc::cli {

// Thread-safe.
class Live {
 public:
  enum class Events { kNone, kToStandardOutput };
  enum class Stage { kPreparing, kMeasuring };

  // `before` are the verdicts of earlier commands.
  Live(std::string run, Events events, std::span<const store::Judgement> before);

  // A long step that is not counted.
  void note(std::string_view step) { bar_.note(step); }
  void begin(const bench::CoursePlan& plan);
  void observe(const bench::CourseProgress& progress);
  void enter(Stage stage) { change(stage, +1); }
  void leave(Stage stage) { change(stage, -1); }
  void finish();

 private:
  enum class Due { kInASecond, kNow };
  void change(Stage stage, int by);
  void show(Due due);
  void write(const std::string& event) const;

  // Constant after construction.
  const std::string run_;
  const Events events_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();

  ProgressBar bar_;
  std::mutex mutex_;  // Guards the rest.
  bench::PassRate pass_rate_;
  bench::LiveState state_;
  std::optional<std::chrono::steady_clock::time_point> written_;  // The time of the last event.
};

// The pipeline, whose two halves are counted.
class LivePipeline final : public task::Evaluator {
 public:
  // REQUIRES: both outlive it.
  LivePipeline(eval::Pipeline& pipeline, Live& live) : pipeline_(pipeline), live_(live) {}
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override;

 private:
  eval::Pipeline& pipeline_;
  Live& live_;
};

}  // namespace mc::cli

#endif  // MC_CLI_LIVE_H_
