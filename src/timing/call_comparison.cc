// SPDX-License-Identifier: Apache-2.0
#include "timing/call_comparison.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/check.h"
#include "execute/failure.h"
#include "timing/statistics.h"

namespace mc::timing {
namespace {

using execute::CallResult;
using execute::ErrorReply;
using execute::Failure;
using execute::LimitExceeded;
using execute::MalformedReply;
using execute::Reply;
using execute::Stage;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kWarmUpCalls = 3;
constexpr int kWarmUpBatches = 2;  // The first one may load what the second one has.
// Covers setting inputs, flushing the cache, copying outputs, and the host.
constexpr double kBetweenCalls_us = 100;
constexpr int64_t kCallsMin = 3;  // A round, unless a call is long.
constexpr double kLong_us = 10'000;
constexpr int64_t kCallsMax = 100;  // The most calls of a round.
constexpr double kSlowerMax = 20;
// The least rate at which the driver clears freed memory: an H100 took 33 ms for 12.8 GB.  In that
// time a memory-bound kernel takes 16 % longer.
constexpr double kClearedBytesPerSecond = 2.5e11;
// The bound on outputs that wait for their comparison.
constexpr int64_t kKeptBytesMax = int64_t{1} << 30;
// The ratio of times above which precision is not needed.
constexpr double kFarSlower = 10;
constexpr int kRoundsOfFarSlower = 3;
// Slack for outputs with gaps between elements, and for written inputs.
constexpr int64_t kOutputsSlackBytes = int64_t{1} << 20;
// If fewer calls than this share were queued whole, host time counts.
constexpr double kQueuedShareMin = 0.5;
// The difference between processes, as a standard deviation of the logarithm.
constexpr double kSpread = 0.0025;

// An event time is accepted if it is at least this share of the host-clock time.
constexpr double kHostShare = 0.9;
constexpr double kHostSlack_us = 5;

task::Estimate scaled(const task::Estimate& estimate, double factor) {
  return {estimate.median * factor, estimate.low * factor, estimate.high * factor};
}

int64_t bytes_of_call(int64_t inputs_bytes, int64_t outputs_bytes) {
  return 2 * inputs_bytes + outputs_bytes + kOutputsSlackBytes;
}

constexpr int kTreeDepthMax = 16;

// True if a candidate's return value has numbers beside its tensors; these are known only for the
// last call.
bool has_numbers(const nlohmann::json& tree, int depth = 0) {
  if (!tree.is_object() || depth > kTreeDepthMax) return false;
  const auto items = tree.find("items"), value = tree.find("value");
  if (items == tree.end()) {
    return tree.contains("hex") || (value != tree.end() && value->is_number());
  }
  return std::ranges::any_of(*items, [&](const nlohmann::json& item) {
    const bool is_of_dict = item.is_array() && item.size() == 2;
    return has_numbers(is_of_dict ? item[1] : item, depth + 1);
  });
}

double median_of(std::vector<double> values) {
  MC_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

int64_t batch_bytes(int64_t inputs_bytes, int64_t outputs_bytes, int64_t bytes_max) {
  const int64_t call = bytes_of_call(inputs_bytes, outputs_bytes);
  return std::max(call, std::min(bytes_max, kCallsMax * call));
}

CallComparison::CallComparison(execute::Judge& judge, TimedProcess candidate, TimedProcess baseline,
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
  MC_TRY_VOID(judge_.call(worker::JudgeRestRequest(), limits_.judge_s), "timing");
  return ok();
}

Result<CallComparison::EarlyOutcome> CallComparison::warm_up(const std::function<void()>& pause) {
  MC_CHECK(!is_open_);
  is_open_ = true;
  const worker::JudgeTimePlanRequest request{options_.seed, options_.tf32};
  MC_TRY(auto plan, judge_.call(request, limits_.judge_s), "plan");
  plan_ = std::move(plan.body);
  const int64_t room = std::min(kWarmUpCalls, calls_that_fit());
  MC_TRY_VOID(make_room(room), "memory");
  for (int i = 0; i < kWarmUpBatches; ++i) {
    const int64_t calls = i == 0 || own_.call_us > kLong_us ? 1 : room;
    own_.is_gated = other_.is_gated = i > 0;
    pause();
    MC_TRY_VOID(generate_inputs(calls), "inputs");
    for (Side* side : {&own_, &other_}) {
      pause();
      MC_TRY(EarlyOutcome early, run(*side, calls), "warm-up");
      if (early) return early;
    }
  }
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::run() {
  MC_CHECK(is_open_ && !counts_);  // It runs once, after warm_up().
  calls_of_round_ = calls_of_round();
  MC_TRY_VOID(make_room(calls_of_round_), "memory");
  note_freed(shared_.nbytes);  // The memory of the warm-up.
  counts_ = true;
  const int rounds =
      is_far_slower() ? std::min(options_.rounds, kRoundsOfFarSlower) : options_.rounds;
  const auto start = options_.clock.now();
  for (int round = 0; round < rounds; ++round) {
    if (round >= kCallsMin && options_.clock.now() - start > Clock::Seconds(options_.budget_s)) {
      break;
    }
    MC_TRY_VOID(generate_inputs(calls_of_round_), "inputs");
    const bool is_first = random_() % 2 == 0;
    for (Side* side : {is_first ? &own_ : &other_, is_first ? &other_ : &own_}) {
      MC_TRY(EarlyOutcome early, run(*side, calls_of_round_), "batch");
      if (early) return early;
    }
    if (nvml_ != nullptr) nvml_->sample(clocks_);
  }
  return run_pieces();
}

Stage<CallComparison::Timed> CallComparison::finish(const std::function<void()>& pause) {
  using Ran = std::variant<Timed, task::Outcome>;
  MC_TRY(EarlyOutcome early, check_kept(pause), "check");
  if (early) return Ran(std::move(*early));
  if (other_.process.session == nullptr) measure_memory();
  MC_TRY_VOID(close(), "timing");
  return Ran(summarize());
}

void CallComparison::note_freed(int64_t bytes) {
  cleared_at_ = std::max(cleared_at_, options_.clock.now()) +
                std::chrono::duration_cast<Clock::TimePoint::duration>(
                    Seconds(static_cast<double>(bytes) / kClearedBytesPerSecond));
}

void CallComparison::wait_until_cleared() const {
  const Seconds left = cleared_at_ - options_.clock.now();
  if (left.count() > 0) options_.clock.sleep(left);
}

void CallComparison::measure_memory() {
  const auto memory = judge_.call(worker::JudgeTimeMemoryRequest(), limits_.judge_s);
  if (memory) {
    other_.memory_bytes = memory->body.memory_bytes;
  } else {
    notes_.emplace_back("the baseline's memory was not measured: " + memory.error().message);
  }
}

// A candidate that takes ten times as long as the baseline needs no precise time.
bool CallComparison::is_far_slower() const { return own_.call_us > kFarSlower * other_.call_us; }

// Compares the kept outputs.  The inputs of each batch are generated once more, at the same
// address.
Result<CallComparison::EarlyOutcome> CallComparison::check_kept(
    const std::function<void()>& pause) {
  int64_t generated = number_;
  for (const Taken& taken : std::exchange(kept_, {})) {
    pause();
    if (taken.number != generated) MC_TRY_VOID(regenerate_inputs(taken.number), "inputs");
    generated = taken.number;
    MC_TRY(EarlyOutcome early, check(taken), "verify");
    if (early) return early;
  }
  return EarlyOutcome();
}

// Runs the call that is measured launch by launch.  It comes after all rounds, so that caches and
// clocks are in the same state as in these.
Result<CallComparison::EarlyOutcome> CallComparison::run_pieces() {
  if (own_.process.device == nullptr) return EarlyOutcome();
  MC_TRY_VOID(generate_inputs(1), "inputs");
  MC_TRY(EarlyOutcome early, run(own_, 1, /*is_itemised=*/true), "candidate");
  if (early || other_.process.device == nullptr) return early;
  return run(other_, 1, /*is_itemised=*/true);
}

Status CallComparison::make_room(int64_t calls) {
  MC_TRY(auto shared, judge_.call(worker::JudgeTimeShareRequest{calls}, limits_.judge_s), "share");
  const int64_t outputs_bytes = plan_.outputs_bytes + kOutputsSlackBytes;
  for (Side* side : {&own_, &other_}) {
    if (side->process.device == nullptr) continue;
    MC_TRY(side->address,
           side->process.device->prepare_batches(calls, shared.body.stride, outputs_bytes),
           "share");
  }
  shared_ = {std::move(shared.body.inputs), shared.body.stride, shared.body.nbytes,
             std::move(shared.region), calls};
  return ok();
}

// The number of calls that a batch has room for.
int64_t CallComparison::calls_that_fit() const {
  const int64_t call = bytes_of_call(plan_.inputs_bytes, plan_.outputs_bytes);
  return batch_bytes(plan_.inputs_bytes, plan_.outputs_bytes, options_.batch_bytes_max) / call;
}

// The number of calls that fit into a round's time, at the slower side's rate, and into memory.
int64_t CallComparison::calls_of_round() const {
  const double call_us = std::max(own_.call_us, other_.call_us) + kBetweenCalls_us;
  const auto wanted = static_cast<int64_t>(options_.round_us / call_us);
  const int64_t least = call_us < kLong_us ? kCallsMin : 1;
  return std::min({calls_that_fit(), kCallsMax, std::max(least, wanted)});
}

Status CallComparison::generate_inputs(int64_t calls) {
  MC_CHECK(calls <= shared_.calls);
  const worker::JudgeTimeGenerateInputsRequest request{++number_, calls};
  MC_TRY_VOID(judge_.call(request, limits_.judge_s), "generate inputs");
  return ok();
}

Status CallComparison::regenerate_inputs(int64_t number) {
  MC_CHECK(0 < number && number <= number_);
  const worker::JudgeTimeGenerateInputsRequest request{number, calls_of_round_};
  MC_TRY_VOID(judge_.call(request, limits_.judge_s), "generate inputs");
  return ok();
}

Result<CallComparison::EarlyOutcome> CallComparison::run(Side& side, int64_t calls,
                                                         bool is_itemised) {
  if (counts_) wait_until_cleared();
  if (side.process.device != nullptr) {
    MC_TRY(EarlyOutcome early, run_candidate(side, calls, is_itemised), "candidate");
    if (!early || &side == &own_) return early;
    return Error{ErrorCode::kUnavailable, "the candidate fails as a baseline"};
  }
  MC_TRY_VOID(run_baseline(side, calls), "baseline");
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::run_candidate(Side& side, int64_t calls,
                                                                   bool is_itemised) {
  using Request = worker::CandidateTimeCallsThereRequest;
  MC_CHECK(side.process.session != nullptr && side.process.device != nullptr);
  execute::Session& session = *side.process.session;
  execute::DeviceProcess* const device = side.process.device;
  const bool is_gated = side.is_gated && !is_itemised;
  MC_TRY_VOID(device->start_batch(calls, shared_.region, shared_.nbytes, is_gated, is_itemised),
              "batch");
  const Request request{.calls = calls,
                        .inputs = shared_.inputs,
                        .stride = shared_.stride,
                        .written = plan_.written,
                        .address = side.address,
                        .frees_cache = is_itemised};
  // Other evaluations wait for the device, so a side that was fast before does not get the whole
  // limit.
  const double expected_s = static_cast<double>(calls) * (side.call_us + kBetweenCalls_us) * 1e-6;
  double limit_s = std::min(limits_.forward_s, options_.patience_s + kSlowerMax * expected_s);
  if (number_ == 1) limit_s += options_.first_s;
  CallResult made = session.call(request.to_json(), nullptr, Seconds(limit_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) return failed("forward", made, limit_s);
  session.suspend();
  calls_ += &side == &own_ ? calls : 0;
  auto response = worker::parse_response<Request>(std::move(*reply));
  if (!response) return failed("forward", MalformedReply{response.error().message}, limit_s);
  CallResult finished = device->finish_batch(limit_s);
  reply = std::get_if<Reply>(&finished);
  if (reply == nullptr) {
    if (std::holds_alternative<LimitExceeded>(finished))
      return failed("forward", finished, limit_s);
    const auto* refusal = std::get_if<ErrorReply>(&finished);
    if (refusal != nullptr)
      return failed("forward", MalformedReply{refusal->exception.message}, limit_s);
    return Error{ErrorCode::kUnavailable, "the device process ended in a batch"};
  }
  MC_TRY(auto times, worker::parse_response<worker::DeviceTimeFinishRequest>(std::move(*reply)),
         "times");
  if (is_itemised) {
    side.memory_bytes = times.body.memory_bytes;
    if (&side == &own_) kernels_ = std::move(times.body.kernels);
    return verify(side, 0, response->body.outputs, /*may_wait=*/counts_);
  }
  if (&side == &own_) {
    for (const int64_t launches : times.body.launches_own) {
      launches_own_least_ = std::min(launches_own_least_, launches);
    }
    // The baseline has as many commands, and must be queued in the same way.
    if (times.body.long_calls > 0) own_.is_long = true;
  }
  take(side, times.body.us, times.body.queued_whole);
  if (own_.is_long) own_.is_gated = other_.is_gated = false;
  if (counts_ && !times.body.host_us.empty()) {
    side.host_us.push_back(std::ranges::min(times.body.host_us));
  }
  std::vector<int64_t> chosen(static_cast<size_t>(calls));
  std::iota(chosen.begin(), chosen.end(), 0);
  const auto outputs = nlohmann::json::parse(response->body.outputs.json, nullptr, false);
  if (has_numbers(outputs)) chosen = {calls - 1};
  std::ranges::shuffle(chosen, random_);
  chosen.resize(std::min<size_t>(chosen.size(), static_cast<size_t>(options_.verified)));
  for (const int64_t call : chosen) {
    MC_TRY(EarlyOutcome early, verify(side, call, response->body.outputs, /*may_wait=*/counts_),
           "verify");
    if (early) return early;
  }
  return EarlyOutcome();
}

Result<CallComparison::EarlyOutcome> CallComparison::verify(const Side& side, int64_t call,
                                                            const worker::Tree& outputs,
                                                            bool may_wait) {
  MC_CHECK(side.process.device != nullptr);
  CallResult taken = side.process.device->take_call(call, outputs);
  auto* reply = std::get_if<Reply>(&taken);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<ErrorReply>(&taken);
    // Other evaluations may hold too much memory.
    if (refusal != nullptr && refusal->kind == "oom") {
      return Error{ErrorCode::kExhausted, refusal->exception.message};
    }
    if (refusal != nullptr) return wrong_in_a_batch(refusal->exception.message);
    return Error{ErrorCode::kUnavailable, "the device process ended as it copied outputs"};
  }
  MC_TRY(auto copied, worker::parse_response<worker::DeviceTimeTakeRequest>(std::move(*reply)),
         "outputs");
  Taken outputs_taken{number_, call, std::move(copied)};
  const auto num_kept = static_cast<int64_t>(kept_.size());
  if (may_wait && plan_.draws_again && (num_kept + 1) * plan_.outputs_bytes <= kKeptBytesMax) {
    kept_.push_back(std::move(outputs_taken));
    return EarlyOutcome();
  }
  return check(outputs_taken);
}

Result<CallComparison::EarlyOutcome> CallComparison::check(const Taken& taken) {
  const worker::JudgeTimeCheckRequest request{taken.call, taken.outputs.body.outputs};
  MC_TRY(const auto checked, judge_.call(request, limits_.judge_s, &taken.outputs.region), "check");
  note_freed(plan_.outputs_bytes);  // The memory of the copy.
  ++verified_;
  if (checked.body.problem.empty()) return EarlyOutcome();
  return wrong_in_a_batch("call " + std::to_string(taken.call) + ": " + checked.body.problem);
}

Status CallComparison::run_baseline(Side& side, int64_t calls) {
  execute::Session* const session = side.process.session;
  if (session == nullptr) {
    const worker::JudgeTimeCallsRequest request{calls, side.is_gated};
    MC_TRY(const auto times, judge_.call(request, limits_.judge_s), "baseline");
    take(side, times.body.us, times.body.queued_whole);
    return ok();
  }
  using Request = worker::BaselineTimeCallsRequest;
  const Request request{.calls = calls,
                        .inputs = shared_.inputs,
                        .stride = shared_.stride,
                        .nbytes = shared_.nbytes,
                        .is_gated = side.is_gated};
  CallResult made = session->call(request.to_json(), &shared_.region, Seconds(limits_.judge_s));
  auto* reply = std::get_if<Reply>(&made);
  if (reply == nullptr) {
    const auto* refusal = std::get_if<ErrorReply>(&made);
    return Error{ErrorCode::kUnavailable,
                 "the baseline failed: " +
                     (refusal == nullptr ? session->output_tail() : refusal->exception.message)};
  }
  MC_TRY(const auto times, worker::parse_response<Request>(std::move(*reply)), "baseline");
  take(side, times.body.us, times.body.queued_whole);
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
                                                            const CallResult& result,
                                                            double limit_s) const {
  return EarlyOutcome(std::visit(Failure{limits_, what, limit_s, {}}, result));
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

// The lower bound on a call's time by the host clock, regardless of the events; 0 where no call was
// checked.
double CallComparison::bound_us() const {
  if (own_.host_us.empty()) return 0;
  return kHostShare * median_of(own_.host_us) - kHostSlack_us;
}

CallComparison::Timed CallComparison::summarize() const {
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
