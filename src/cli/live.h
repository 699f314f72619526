// SPDX-License-Identifier: Apache-2.0
//
// Live: the display of a running benchmark: a bar on standard error, and with --json events on
// standard output (bench/live.h).
//
//   Live live(run_name, Live::Events::kNone, verdicts_before, turns);
//   SamplingLoop loop(run, items, sampling, [&](const auto& done) { live.observe(done); });
//   MC_TRY(SamplingPlan plan, loop.plan(sampler), "bench");
//   live.begin(plan);
//   LivePipeline evaluator(eval_options, live);
//   auto end = loop.run(sampler, [&] { return evaluator.open(); });
#ifndef MC_CLI_LIVE_H_
#define MC_CLI_LIVE_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/live.h"
#include "bench/sampling_loop.h"
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

  // `before` contains the verdicts of earlier commands; `turns` is the maximum number of turns of a
  // sample.
  Live(std::string run, Events events, std::span<const store::Judgement> before, int64_t turns);

  // Shows the beginning of a long step whose progress is not counted.
  void note(std::string_view step) { bar_.note(step); }
  void begin(const bench::SamplingPlan& plan);
  void observe(const bench::SamplingProgress& progress);
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
  std::mutex mutex_;  // The mutex guards the members below.
  bench::PassRate pass_rate_;
  bench::LiveState state_;
  std::optional<std::chrono::steady_clock::time_point> written_;  // The time of the last event.
};

// The pipeline, which reports the stages of its work to Live.  It is created at its first use.
class LivePipeline final : public task::Evaluator {
 public:
  // REQUIRES: both arguments outlive this object.
  LivePipeline(const eval::Options& options, Live& live) : options_(options), live_(live) {}
  // Creates the pipeline and returns this object.  If the first call fails, all later calls return
  // the same error.  Thread-safe.
  Result<task::Evaluator*> open();
  // REQUIRES: open() has succeeded.
  task::Verdict evaluate(const task::Task& task, const task::Candidate& candidate) override;

 private:
  const eval::Options& options_;
  Live& live_;
  std::mutex mutex_;  // The mutex guards the creation of the pipeline.
  std::optional<Result<std::unique_ptr<eval::Pipeline>>> pipeline_;
};

}  // namespace mc::cli

#endif  // MC_CLI_LIVE_H_
