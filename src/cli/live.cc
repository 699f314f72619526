// SPDX-License-Identifier: Apache-2.0
#include "cli/live.h"

#include <iostream>
#include <utility>
#include <variant>

#include "core/check.h"

namespace mc::cli {
namespace {

constexpr auto kEventInterval = std::chrono::seconds(1);

}  // namespace

Live::Live(std::string run, Events events, std::span<const store::Judgement> before, int64_t turns)
    : run_(std::move(run)), events_(events), bar_(0), pass_rate_(turns) {
  for (const store::Judgement& one : before) pass_rate_.add(one);
  state_.pass_rate = pass_rate_.figure();
}

void Live::begin(const bench::SamplingPlan& plan) {
  const std::lock_guard lock(mutex_);
  state_.num_before = plan.num_judged;
  state_.loop.num_verdicts = plan.num_judged;
  state_.loop.num_asked = static_cast<int64_t>(plan.num_to_ask);
  state_.loop.num_waiting = static_cast<int64_t>(plan.num_to_judge);
  show(Due::kNow);
}

void Live::observe(const bench::SamplingProgress& progress) {
  const std::lock_guard lock(mutex_);
  state_.loop = progress;
  if (progress.judgement != nullptr) {
    pass_rate_.add(*progress.judgement);
    state_.pass_rate = pass_rate_.figure();
    write(bench::sample_event(run_, *progress.judgement));
  }
  state_.loop.judgement = nullptr;  // The pointer is valid during this call only.
  show(Due::kInASecond);
}

void Live::finish() {
  const std::lock_guard lock(mutex_);
  show(Due::kNow);
  bar_.finish();
}

void Live::change(Stage stage, int by) {
  const std::lock_guard lock(mutex_);
  auto& count = stage == Stage::kPreparing ? state_.num_preparing : state_.num_measuring;
  count += by;
  MC_CHECK(count >= 0);
  show(Due::kInASecond);
}

// Writes an event if it is due now, or if the last event is at least a second old.
void Live::show(Due due) {
  const auto now = std::chrono::steady_clock::now();
  const bench::LiveWork work = bench::work_of(state_);
  bar_.show(static_cast<size_t>(work.done), static_cast<size_t>(work.total),
            bench::line_of(state_));
  if (due == Due::kInASecond && written_ && now - *written_ < kEventInterval) return;
  written_ = now;
  state_.elapsed_s = std::chrono::duration<double>(now - start_).count();
  write(bench::progress_event(run_, state_));
}

void Live::write(const std::string& event) const {
  if (events_ == Events::kToStandardOutput) std::cout << event << std::flush;
}

Result<task::Evaluator*> LivePipeline::open() {
  const std::lock_guard lock(mutex_);
  if (!pipeline_) {
    pipeline_ =
        eval::Pipeline::create(options_, [this](std::string_view step) { live_.note(step); });
  }
  if (!*pipeline_) return pipeline_->error();
  return static_cast<task::Evaluator*>(this);
}

task::Verdict LivePipeline::evaluate(const task::Task& task, const task::Candidate& candidate) {
  eval::Pipeline& pipeline = ***pipeline_;
  live_.enter(Live::Stage::kPreparing);
  eval::Preparation preparation = pipeline.prepare(task, candidate);
  live_.leave(Live::Stage::kPreparing);
  if (auto* decided = std::get_if<task::Verdict>(&preparation)) return std::move(*decided);
  live_.enter(Live::Stage::kMeasuring);
  task::Verdict verdict = pipeline.measure(std::get<eval::PreparedCandidate>(preparation));
  live_.leave(Live::Stage::kMeasuring);
  return verdict;
}

}  // namespace mc::cli
