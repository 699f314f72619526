// SPDX-License-Identifier: Apache-2.0
#include "timing/call_comparison.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"
#include "execute/failure.h"
#include "timing/statistics.h"

namespace mc::timing {
namespace {

using execute::Answer;
using execute::Failure;
using execute::Garbled;
using execute::Refusal;
using execute::Reply;
using execute::Stage;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kWarmUpCalls = 3;
constexpr int kWarmUpBatches = 2;         // The first one may load what the second one has.
constexpr double kBetweenCalls_us = 100;  // Inputs, an emptied cache, outputs, the host.
constexpr int64_t kCallsMin = 3;
constexpr double kFreeShareMax =
    0.25;  // The device's free memory, of which inputs and outputs take a part.
// An output may come with gaps, or inputs that were written.
constexpr int64_t kOutputsSlackBytes = int64_t{1} << 20;
// The host's part counts where fewer calls than this were queued whole.
constexpr double kQueuedShareMin = 0.5;
// The difference between processes, as a standard deviation of the logarithm.
constexpr double kSpread = 0.0025;

// Events are believed to so much of what the host's clock says.
constexpr double kHostShare = 0.9;
constexpr double kHostSlack_us = 5;

task::Estimate scaled(const task::Estimate& estimate, double factor) {
  return {estimate.median * factor, estimate.low * factor, estimate.high * factor};
}

double median_of(std::vector<double> values) {
  MC_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

CallComparison::CallComparison(execute::Judge& judge, RemoteCandidate candidate,
                               execute::Session& baseline, const execute::StageLimits& limits,
                               const CallOptions& options, const Nvml* nvml)
    : judge_(judge),
      candidate_(candidate),
      baseline_(baseline),
      limits_(limits),
      options_(options),
      nvml_(nvml),
      random_(options.seed) {
  MC_CHECK(options.rounds > 0 && options.verified > 0);
}

CallComparison::~CallComparison() { (void)close(); }

Status CallComparison::close() {
  if (!std::exchange(is_open_, false)) return ok();
  MC_TRY_VOID(judge_.ask(worker::JudgeTimeCloseQuestion(), limits_.judge_s), "timing");
  return ok();
}

Result<CallComparison::EarlyOutcome> CallComparison::warm_up() {
  MC_CHECK(!is_open_);
  is_open_ = true;
  MC_TRY(auto plan, judge_.ask(worker::JudgeTimePlanQuestion{options_.seed}, limits_.judge_s),
         "plan");
  plan_ = std::move(plan.said);
  MC_TRY_VOID(make_room(kWarmUpCalls), "memory");
  for (int i = 0; i < kWarmUpBatches; ++i) {
    own_.is_gated = other_.is_gated = i > 0;
    MC_TRY_VOID(draw(kWarmUpCalls), "inputs");
    MC_TRY(EarlyOutcome early, run_candidate(kWarmUpCalls), "warm-up");
    if (early) return early;
    MC_TRY_VOID(run_baseline(kWarmUpCalls), "warm-up");
  }
  return EarlyOutcome();
}

Stage<CallComparison::Timed> CallComparison::run() {
  using Ran = std::variant<Timed, task::Outcome>;
  MC_TRY(const int64_t calls, calls_of_round(), "memory");
  MC_TRY_VOID(make_room(calls), "memory");
  counts_ = true;
  const auto start = options_.clock.now();
  for (int round = 0; round < options_.rounds; ++round) {
    if (round >= kCallsMin && options_.clock.now() - start > Clock::Seconds(options_.budget_s)) {
      break;
    }
    MC_TRY_VOID(draw(calls), "inputs");
    const bool is_first = random_() % 2 == 0;
    if (!is_first) MC_TRY_VOID(run_baseline(calls), "baseline");
    MC_TRY(EarlyOutcome early, run_candidate(calls), "batch");
    if (early) return Ran(std::move(*early));
    if (is_first) MC_TRY_VOID(run_baseline(calls), "baseline");
    if (nvml_ != nullptr) nvml_->look(clocks_);
  }
  MC_TRY_VOID(close(), "timing");
  return Ran(conclude());
}

Status CallComparison::make_room(int64_t calls) {
  MC_TRY(auto shared, judge_.ask(worker::JudgeTimeShareQuestion{calls}, limits_.judge_s), "share");
  const int64_t outputs_bytes = plan_.outputs_bytes + kOutputsSlackBytes;
  MC_TRY(const int64_t address,
         candidate_.device.prepare_batches(calls, shared.said.stride, outputs_bytes), "share");
  shared_ = {std::move(shared.said.inputs),
             shared.said.stride,
             shared.said.nbytes,
             std::move(shared.region),
             calls,
             address};
  return ok();
}

// The number that fits into the round's time, at the pace of the slower one, and into memory:
// inputs lie there twice, outputs once.
Result<int64_t> CallComparison::calls_of_round() {
  MC_TRY(const auto room, judge_.ask(worker::JudgeTimeRoomQuestion(), limits_.judge_s), "room");
  const double call_bytes =
      static_cast<double>(2 * shared_.stride + plan_.outputs_bytes + kOutputsSlackBytes);
  const double fit = kFreeShareMax * static_cast<double>(room.said.free_bytes) / call_bytes;
  const double wanted =
      options_.round_us / (std::max(own_.call_us, other_.call_us) + kBetweenCalls_us);
  const double most = std::max(1.0, std::min(fit, static_cast<double>(options_.calls_max)));
  return static_cast<int64_t>(std::min(most, std::max(static_cast<double>(kCallsMin), wanted)));
}

Status CallComparison::draw(int64_t calls) {
  MC_CHECK(calls <= shared_.calls);
  const worker::JudgeTimeGenerateInputsQuestion question{++number_, calls, 0};
  MC_TRY_VOID(judge_.ask(question, limits_.judge_s), "draw");
  return ok();
}

Result<CallComparison::EarlyOutcome> CallComparison::run_candidate(int64_t calls) {
  using Question = worker::ContestantTimeCallsThereQuestion;
  MC_TRY_VOID(candidate_.device.start_batch(calls, shared_.region, shared_.nbytes, own_.is_gated),
              "batch");
  const Question question{.calls = calls,
                          .inputs = shared_.inputs,
                          .stride = shared_.stride,
                          .written = plan_.written,
                          .address = shared_.address};
  Answer made = candidate_.session.ask(question.to_json(), nullptr, Seconds(limits_.forward_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) return failed("forward", made);
  candidate_.session.rest();
  calls_ += calls;
  auto told = worker::told<Question>(std::move(*reply));
  if (!told) return failed("forward", Garbled{told.error().message});
  Answer finished = candidate_.device.finish_batch();
  reply = std::get_if<Reply>(&finished);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<Refusal>(&finished);
    if (refusal != nullptr) return failed("forward", Garbled{refusal->exception.message});
    return Error{ErrorCode::kUnavailable, "the device process ended in a batch"};
  }
  MC_TRY(const auto times, worker::told<worker::DeviceTimeFinishQuestion>(std::move(*reply)),
         "times");
  for (const int64_t launches : times.said.launches_own) {
    launches_own_least_ = std::min(launches_own_least_, launches);
  }
  take(own_, times.said.us, times.said.queued_whole);
  if (counts_ && !times.said.host_us.empty()) {
    own_.host_us.push_back(std::ranges::min(times.said.host_us));
  }
  for (int i = 0; i < options_.verified; ++i) {
    const auto other = static_cast<int64_t>(random_() % static_cast<uint64_t>(calls));
    MC_TRY(EarlyOutcome early, verify(i == 0 ? calls - 1 : other, told->said.outputs), "verify");
    if (early) return early;
  }
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::verify(int64_t call,
                                                            const worker::Tree& outputs) {
  Answer taken = candidate_.device.take_call(call, outputs);
  auto* reply = std::get_if<Reply>(&taken);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<Refusal>(&taken);
    if (refusal != nullptr) return wrong_in_a_batch(refusal->exception.message);
    return Error{ErrorCode::kUnavailable, "the device process ended as it copied outputs"};
  }
  MC_TRY(auto copied, worker::told<worker::DeviceTimeTakeQuestion>(std::move(*reply)), "outputs");
  const worker::JudgeTimeCheckQuestion question{call, std::move(copied.said.outputs)};
  MC_TRY(const auto checked, judge_.ask(question, limits_.judge_s, &copied.region), "check");
  ++verified_;
  if (checked.said.problem.empty()) return EarlyOutcome();
  return wrong_in_a_batch("call " + std::to_string(call) + ": " + checked.said.problem);
}

Status CallComparison::run_baseline(int64_t calls) {
  using Question = worker::BaselineTimeCallsQuestion;
  const Question question{.calls = calls,
                          .inputs = shared_.inputs,
                          .stride = shared_.stride,
                          .nbytes = shared_.nbytes,
                          .is_gated = other_.is_gated};
  Answer made = baseline_.ask(question.to_json(), &shared_.region, Seconds(limits_.judge_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<Refusal>(&made);
    return Error{ErrorCode::kUnavailable,
                 "the baseline failed: " +
                     (refusal == nullptr ? baseline_.output_tail() : refusal->exception.message)};
  }
  MC_TRY(const auto times, worker::told<Question>(std::move(*reply)), "baseline");
  take(other_, times.said.us, times.said.queued_whole);
  return ok();
}

void CallComparison::take(Side& side, const std::vector<double>& us, int64_t queued_whole) {
  if (us.empty()) return;
  const double median = median_of(us);
  side.call_us = std::min(side.call_us, median);
  if (side.is_gated) {
    side.is_gated =
        static_cast<double>(queued_whole) >= kQueuedShareMin * static_cast<double>(us.size());
  }
  if (!counts_) return;
  side.us.insert(side.us.end(), us.begin(), us.end());
  side.medians.push_back(median);
}

Result<CallComparison::EarlyOutcome> CallComparison::failed(const char* what,
                                                            const Answer& answer) const {
  return EarlyOutcome(std::visit(Failure{limits_, what, limits_.forward_s, {}}, answer));
}

CallComparison::EarlyOutcome CallComparison::wrong_in_a_batch(const std::string& problem) const {
  task::Trial trial;
  trial.shape = judge_.plan().shapes.at(0).label;
  trial.distribution = "timed";
  task::OutputCheck check;
  check.path = "output";
  check.problem = "timed";
  check.detail = "in a batch of calls, each on inputs of its own: " + problem;
  trial.checks.push_back(std::move(check));
  return task::Wrong{0, false, {std::move(trial)}};
}

// A call takes no less than this by the host's clock, whatever the events say; 0 where no call was
// checked.
double CallComparison::bound_us() const {
  if (own_.host_us.empty()) return 0;
  return kHostShare * median_of(own_.host_us) - kHostSlack_us;
}

CallComparison::Timed CallComparison::conclude() const {
  MC_CHECK(!is_open_ && !own_.medians.empty() && own_.medians.size() == other_.medians.size());
  std::vector<double> ratios;
  for (size_t i = 0; i < own_.medians.size(); ++i) {
    ratios.push_back(other_.medians[i] / own_.medians[i]);
  }
  Timed timed;
  task::Performance& result = timed.performance;
  result.time_us = widened(estimate_median(own_.us), kSpread);
  result.time_eager_us = widened(estimate_median(other_.us), kSpread);
  result.speedup_eager = widened(estimate_median(ratios), kSpread);
  task::Timing& how = result.timing;
  if (const double factor = bound_us() / result.time_us.median; factor > 1) {
    result.time_us = scaled(result.time_us, factor);
    result.speedup_eager = scaled(result.speedup_eager, 1 / factor);
    how.notes.emplace_back("calls took longer by the host's clock than by the device's events");
  }
  how.mode = own_.is_gated ? "enqueued" : "host_synchronous";
  how.cache = "inputs_cold";
  how.batches = static_cast<int64_t>(own_.medians.size());
  how.calls = shared_.calls;
  how.calls_verified = verified_;
  how.clocks = clocks_;
  timed.launches_own_least = launches_own_least_;
  timed.calls = calls_;
  timed.work = {static_cast<double>(plan_.inputs_bytes + plan_.outputs_bytes), plan_.operations,
                plan_.is_half};
  return timed;
}

}  // namespace mc::timing
