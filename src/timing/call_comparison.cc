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
using execute::ErrorReply;
using execute::Failure;
using execute::LimitExceeded;
using execute::MalformedReply;
using execute::Reply;
using execute::Stage;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kWarmUpCalls = 3;
constexpr int kWarmUpBatches = 2;         // The first one may load what the second one has.
constexpr double kBetweenCalls_us = 100;  // Inputs, an emptied cache, outputs, the host.
constexpr int64_t kCallsMin = 3;
constexpr double kSlowerMax = 20;
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

CallComparison::CallComparison(execute::Judge& judge, Contender candidate, Contender baseline,
                               const execute::StageLimits& limits, const CallOptions& options,
                               const Nvml* nvml)
    : judge_(judge),
      limits_(limits),
      options_(options),
      nvml_(nvml),
      random_(options.seed),
      own_(candidate),
      other_(baseline) {
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
  plan_ = std::move(plan.body);
  MC_TRY(const int64_t fit, calls_that_fit(), "memory");
  const int64_t calls = std::min(kWarmUpCalls, fit);
  MC_TRY_VOID(make_room(calls), "memory");
  for (int i = 0; i < kWarmUpBatches; ++i) {
    own_.is_gated = other_.is_gated = i > 0;
    MC_TRY_VOID(draw(calls), "inputs");
    for (Side* side : {&own_, &other_}) {
      MC_TRY(EarlyOutcome early, run(*side, calls), "warm-up");
      if (early) return early;
    }
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
    for (Side* side : {is_first ? &own_ : &other_, is_first ? &other_ : &own_}) {
      MC_TRY(EarlyOutcome early, run(*side, calls), "batch");
      if (early) return Ran(std::move(*early));
    }
    if (nvml_ != nullptr) nvml_->look(clocks_);
  }
  MC_TRY(EarlyOutcome early, run_pieces(), "pieces");
  if (early) return Ran(std::move(*early));
  MC_TRY_VOID(close(), "timing");
  return Ran(conclude());
}

// After all rounds: what the last of them left in caches and clocks is what they had, too.
Result<CallComparison::EarlyOutcome> CallComparison::run_pieces() {
  if (own_.contender.device == nullptr) return EarlyOutcome();
  counts_ = false;
  MC_TRY_VOID(draw(1), "inputs");
  MC_TRY(EarlyOutcome early, run(own_, 1, /*is_itemised=*/true), "candidate");
  if (early) return early;
  if (other_.contender.device != nullptr) return run(other_, 1, /*is_itemised=*/true);
  using Question = worker::BaselineMeasureMemoryQuestion;
  Answer made = other_.contender.session.ask(Question{shared_.inputs}.to_json(), &shared_.region,
                                             Seconds(limits_.judge_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) {
    notes_.emplace_back("the baseline's memory was not measured: " + baseline_failed(made).message);
    return EarlyOutcome();
  }
  MC_TRY(const auto told, worker::parse_response<Question>(std::move(*reply)), "baseline");
  other_.memory_bytes = told.body.memory_bytes;
  return EarlyOutcome();
}

Status CallComparison::make_room(int64_t calls) {
  MC_TRY(auto shared, judge_.ask(worker::JudgeTimeShareQuestion{calls}, limits_.judge_s), "share");
  const int64_t outputs_bytes = plan_.outputs_bytes + kOutputsSlackBytes;
  for (Side* side : {&own_, &other_}) {
    if (side->contender.device == nullptr) continue;
    MC_TRY(side->address,
           side->contender.device->prepare_batches(calls, shared.body.stride, outputs_bytes),
           "share");
  }
  shared_ = {std::move(shared.body.inputs), shared.body.stride, shared.body.nbytes,
             std::move(shared.region), calls};
  return ok();
}

// Inputs lie in memory twice, outputs once.
Result<int64_t> CallComparison::calls_that_fit() {
  MC_TRY(const auto room, judge_.ask(worker::JudgeTimeRoomQuestion(), limits_.judge_s), "room");
  const double call_bytes =
      static_cast<double>(2 * plan_.inputs_bytes + plan_.outputs_bytes + kOutputsSlackBytes);
  const double fit = kFreeShareMax * static_cast<double>(room.body.free_bytes) / call_bytes;
  return static_cast<int64_t>(std::clamp(fit, 1.0, static_cast<double>(options_.calls_max)));
}

// The number that fits into the round's time, at the pace of the slower one, and into memory.
Result<int64_t> CallComparison::calls_of_round() {
  MC_TRY(const int64_t fit, calls_that_fit(), "memory");
  const double call_us = std::max(own_.call_us, other_.call_us) + kBetweenCalls_us;
  const auto wanted = static_cast<int64_t>(options_.round_us / call_us);
  return std::min(fit, std::max(kCallsMin, wanted));
}

Status CallComparison::draw(int64_t calls) {
  MC_CHECK(calls <= shared_.calls);
  const worker::JudgeTimeGenerateInputsQuestion question{++number_, calls};
  MC_TRY_VOID(judge_.ask(question, limits_.judge_s), "draw");
  return ok();
}

Result<CallComparison::EarlyOutcome> CallComparison::run(Side& side, int64_t calls,
                                                         bool is_itemised) {
  if (side.contender.device != nullptr) {
    MC_TRY(EarlyOutcome early, run_candidate(side, calls, is_itemised), "candidate");
    if (!early || &side == &own_) return early;
    return Error{ErrorCode::kUnavailable, "the candidate fails as a baseline"};
  }
  MC_TRY_VOID(run_baseline(side, calls), "baseline");
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::run_candidate(Side& side, int64_t calls,
                                                                   bool is_itemised) {
  using Question = worker::CandidateTimeCallsThereQuestion;
  auto& [session, device] = side.contender;
  const bool is_gated = side.is_gated && !is_itemised;
  MC_TRY_VOID(device->start_batch(calls, shared_.region, shared_.nbytes, is_gated, is_itemised),
              "batch");
  const Question question{.calls = calls,
                          .inputs = shared_.inputs,
                          .stride = shared_.stride,
                          .written = plan_.written,
                          .address = side.address,
                          .frees_cache = is_itemised};
  // The device is this candidate's alone, so who was fast before does not get all of the limit.
  const double expected_s = static_cast<double>(calls) * (side.call_us + kBetweenCalls_us) * 1e-6;
  const double limit_s = std::min(limits_.forward_s, options_.patience_s + kSlowerMax * expected_s);
  Answer made = session.ask(question.to_json(), nullptr, Seconds(limit_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) return failed("forward", made, limit_s);
  session.rest();
  calls_ += &side == &own_ ? calls : 0;
  auto told = worker::parse_response<Question>(std::move(*reply));
  if (!told) return failed("forward", MalformedReply{told.error().message}, limit_s);
  Answer finished = device->finish_batch(limit_s);
  reply = std::get_if<Reply>(&finished);
  if (reply == nullptr) {
    if (std::holds_alternative<LimitExceeded>(finished))
      return failed("forward", finished, limit_s);
    const auto* refusal = std::get_if<ErrorReply>(&finished);
    if (refusal != nullptr)
      return failed("forward", MalformedReply{refusal->exception.message}, limit_s);
    return Error{ErrorCode::kUnavailable, "the device process ended in a batch"};
  }
  MC_TRY(auto times, worker::parse_response<worker::DeviceTimeFinishQuestion>(std::move(*reply)),
         "times");
  if (is_itemised) {
    side.memory_bytes = times.body.memory_bytes;
    if (&side == &own_) kernels_ = std::move(times.body.kernels);
    return verify(side, 0, told->body.outputs);
  }
  if (&side == &own_) {
    for (const int64_t launches : times.body.launches_own) {
      launches_own_least_ = std::min(launches_own_least_, launches);
    }
    // The baseline has as many commands, and is to be queued in the same way.
    if (times.body.long_calls > 0) own_.is_long = true;
  }
  take(side, times.body.us, times.body.queued_whole);
  if (own_.is_long) own_.is_gated = other_.is_gated = false;
  if (counts_ && !times.body.host_us.empty()) {
    side.host_us.push_back(std::ranges::min(times.body.host_us));
  }
  for (int i = 0; i < options_.verified; ++i) {
    const auto call = static_cast<int64_t>(random_() % static_cast<uint64_t>(calls));
    MC_TRY(EarlyOutcome early, verify(side, call, told->body.outputs), "verify");
    if (early) return early;
  }
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::verify(const Side& side, int64_t call,
                                                            const worker::Tree& outputs) {
  Answer taken = side.contender.device->take_call(call, outputs);
  auto* reply = std::get_if<Reply>(&taken);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<ErrorReply>(&taken);
    // The memory that others hold may be too much.
    if (refusal != nullptr && refusal->kind == "oom") {
      return Error{ErrorCode::kExhausted, refusal->exception.message};
    }
    if (refusal != nullptr) return wrong_in_a_batch(refusal->exception.message);
    return Error{ErrorCode::kUnavailable, "the device process ended as it copied outputs"};
  }
  MC_TRY(auto copied, worker::parse_response<worker::DeviceTimeTakeQuestion>(std::move(*reply)),
         "outputs");
  const worker::JudgeTimeCheckQuestion question{call, std::move(copied.body.outputs)};
  MC_TRY(const auto checked, judge_.ask(question, limits_.judge_s, &copied.region), "check");
  ++verified_;
  if (checked.body.problem.empty()) return EarlyOutcome();
  return wrong_in_a_batch("call " + std::to_string(call) + ": " + checked.body.problem);
}

Status CallComparison::run_baseline(Side& side, int64_t calls) {
  using Question = worker::BaselineTimeCallsQuestion;
  execute::Session& session = side.contender.session;
  const Question question{.calls = calls,
                          .inputs = shared_.inputs,
                          .stride = shared_.stride,
                          .nbytes = shared_.nbytes,
                          .is_gated = side.is_gated};
  Answer made = session.ask(question.to_json(), &shared_.region, Seconds(limits_.judge_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) return baseline_failed(made);
  MC_TRY(const auto times, worker::parse_response<Question>(std::move(*reply)), "baseline");
  take(side, times.body.us, times.body.queued_whole);
  return ok();
}

Error CallComparison::baseline_failed(const Answer& answer) const {
  const auto* refusal = std::get_if<ErrorReply>(&answer);
  return {ErrorCode::kUnavailable,
          "the baseline failed: " + (refusal == nullptr ? other_.contender.session.output_tail()
                                                        : refusal->exception.message)};
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

Result<CallComparison::EarlyOutcome> CallComparison::failed(const char* what, const Answer& answer,
                                                            double limit_s) const {
  return EarlyOutcome(std::visit(Failure{limits_, what, limit_s, {}}, answer));
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
  result.memory_bytes = own_.memory_bytes;
  result.memory_eager_bytes = other_.memory_bytes;
  task::Timing& how = result.timing;
  how.notes = notes_;
  if (const double factor = bound_us() / result.time_us.median; factor > 1) {
    result.time_us = scaled(result.time_us, factor);
    result.speedup_eager = scaled(result.speedup_eager, 1 / factor);
    how.notes.emplace_back("calls took longer by the host's clock than by the device's events");
  }
  how.mode = own_.is_gated ? "enqueued" : "host_synchronous";
  if (own_.is_long) {
    how.notes.emplace_back(
        "a call has more commands than can be queued before it begins, so the host's part counts, "
        "the baseline's too");
  }
  how.cache = "inputs_cold";
  how.batches = static_cast<int64_t>(own_.medians.size());
  how.calls = shared_.calls;
  how.calls_verified = verified_;
  how.clocks = clocks_;
  timed.launches_own_least = launches_own_least_;
  timed.calls = calls_;
  timed.kernels = kernels_;
  timed.work = {static_cast<double>(plan_.inputs_bytes + plan_.outputs_bytes), plan_.operations,
                plan_.is_half};
  return timed;
}

}  // namespace mc::timing
