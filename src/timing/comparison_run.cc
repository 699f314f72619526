// SPDX-License-Identifier: Apache-2.0
#include "timing/comparison_run.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"

namespace mc::timing {
namespace {

constexpr int kWarmUpCalls = 2;
constexpr int kEnqueueTries = 2;  // The first one may load what the second one has.
constexpr int kMeasuringRounds = 2;
constexpr int kShorter = 4;  // So much, where the device's queue is too short.
constexpr double kManySnapshotsBytesMax = 64 << 20;  // Of a call's outputs.
constexpr double kShareMin = 0.125;                  // Of the device's memory.
constexpr double kLeastShare = 0.5;  // Of what a process took when its batches were measured out.

std::string exception_of(const task::Outcome& outcome) {
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed == nullptr || !crashed->exception) return "";
  return ": " + crashed->exception->type + ": " + crashed->exception->message;
}

BatchSample sample_of(const Batch& batch) {
  return {batch.calls, batch.done_us, batch.copied_us, batch.events_us};
}

int64_t num_launches(const Batch& batch) {
  int64_t launches = 0;
  for (const TracedKernel& kernel : batch.kernels) launches += kernel.launches;
  return launches;
}

task::Outcome computed_ahead(const LateCount& late) {
  const std::string message = std::to_string(late.ignored) + " of " + std::to_string(late.late) +
                              " timed calls do not show inputs that were there before their turn";
  return task::Illegal{"timing", {{"timing.late_inputs", message, {}}}};
}

}  // namespace

ComparisonRun::ComparisonRun(Judge& judge, const StageLimits& limits, const RunOptions& options,
                             const Nvml* nvml)
    : judge_(judge), limits_(limits), options_(options), nvml_(nvml), random_(options.seed) {
  MC_CHECK(1 <= options.pairs_min && options.pairs_min <= options.pairs);
  MC_CHECK(options.pairs <= options.pairs_max);
}

ComparisonRun::~ComparisonRun() { (void)close(); }

Status ComparisonRun::close() {
  if (!std::exchange(is_open_, false)) return ok();
  MC_TRY_VOID(judge_.ask(worker::JudgeTimeCloseQuestion(), limits_.judge_s), "timing");
  return ok();
}

Result<ComparisonRun::EarlyOutcome> ComparisonRun::warm_up(Session& candidate, Session& baseline) {
  MC_CHECK(processes_.empty());
  MC_TRY_VOID(plan(), "timing");
  MC_TRY(EarlyOutcome early, open_processes(candidate, baseline), "timing");
  if (early) return early;
  MC_TRY_VOID(find_room(), "timing");
  for (Process& process : processes_) {
    MC_TRY(early, warm_up_process(process), "warm-up");
    if (early) return early;
  }
  return EarlyOutcome();
}

Stage<Timed> ComparisonRun::run() {
  using Ran = std::variant<Timed, task::Outcome>;
  MC_CHECK(processes_.size() == 2);
  MC_TRY(EarlyOutcome early, measure_out(), "warm-up");
  if (!early) {
    MC_TRY(early, take_all(), "timing");
  }
  MC_TRY_VOID(close(), "timing");
  if (early) return Ran(std::move(*early));
  return Ran(conclude());
}

Status ComparisonRun::plan() {
  MC_CHECK(!is_open_);
  is_open_ = true;
  MC_TRY(const auto plan, judge_.ask(worker::JudgeTimePlanQuestion{options_.seed}, limits_.judge_s),
         "plan");
  memory_.call = {static_cast<double>(plan.said.inputs_bytes),
                  static_cast<double>(plan.said.outputs_bytes)};
  work_ = {memory_.call.inputs + memory_.call.outputs, plan.said.operations, plan.said.is_half};
  return ok();
}

// A baseline runs the reference alone: where it fails, the machine is to blame.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::ended(const Process& process,
                                                         const task::Outcome& outcome) const {
  if (process.is_candidate) return EarlyOutcome(outcome);
  return Error{ErrorCode::kUnavailable, std::string("the baseline ended as '") +
                                            task::outcome_name(outcome) + "'" +
                                            exception_of(outcome)};
}

Result<ComparisonRun::EarlyOutcome> ComparisonRun::open_processes(Session& candidate,
                                                                  Session& baseline) {
  for (Session* session : {&candidate, &baseline}) {
    const bool is_candidate = session == &candidate;
    MC_TRY(auto created,
           TimedProcess::create(is_candidate ? "candidate" : "baseline", judge_, *session, limits_,
                                options_.clock),
           "timing");
    if (auto* outcome = std::get_if<task::Outcome>(&created)) {
      if (is_candidate && !options_.is_trusted) return EarlyOutcome(std::move(*outcome));
      return Error{ErrorCode::kUnavailable, "the baseline does not answer"};
    }
    processes_.push_back(
        {std::move(std::get<TimedProcess>(created)), is_candidate && !options_.is_trusted});
  }
  return EarlyOutcome();
}

// Memory that has the room already is used again: what a process was given stays mapped there.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::prepare(Process& process, int calls) {
  process.calls = calls;
  if (calls <= process.calls_room) return EarlyOutcome();
  process.calls_room = calls;
  const auto arena = static_cast<int64_t>(memory_.arena_bytes(calls));
  MC_TRY(auto prepared, process.timed.prepare({calls, arena}), "memory");
  auto* outcome = std::get_if<task::Outcome>(&prepared);
  return outcome == nullptr ? EarlyOutcome() : ended(process, *outcome);
}

int ComparisonRun::snapshots() const {
  if (options_.is_trusted) return 0;
  return memory_.call.outputs < kManySnapshotsBytesMax ? options_.snapshots : 1;
}

// One batch, and the judge's opinion on what it returned.  Outputs of the baseline's are copied as
// well, so that it is known how long that takes.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::sample(Process& process,
                                                          TimedProcess::Wanted wanted,
                                                          Batch& batch) {
  wanted.calls = process.calls;
  wanted.snapshots = snapshots();
  const bool is_beside = candidate().is_candidate && !process.is_candidate;
  if (is_beside) candidate().timed.rest();  // It could keep the device busy meanwhile.
  MC_TRY(auto ran, process.timed.run(wanted), "batch");
  if (auto* outcome = std::get_if<task::Outcome>(&ran)) return ended(process, *outcome);
  batch = std::move(std::get<Batch>(ran));
  const int64_t launches = process.is_candidate ? batch.launches_own : batch.launches;
  process.is_idle = process.is_idle || (batch.is_valid && launches < batch.calls);
  // Where the batch blocked, the gate opened before there were inputs.
  return process.is_candidate && batch.is_valid ? verify(process) : EarlyOutcome();
}

Result<ComparisonRun::EarlyOutcome> ComparisonRun::verify(Process& process) {
  MC_TRY(const Opinion opinion, process.timed.verify(), "verify");
  verified_ += std::min(snapshots(), process.calls);
  late_ += opinion.late.late;
  if (!opinion.problem.empty()) return wrong_in_a_batch(opinion.problem);
  return is_ahead(opinion.late) ? EarlyOutcome(computed_ahead(opinion.late)) : EarlyOutcome();
}

ComparisonRun::EarlyOutcome ComparisonRun::wrong_in_a_batch(const std::string& problem) const {
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

// ---- How many calls a batch has -----------------------------------------------------------------

// A process that keeps most of the device for itself ends as one that is short of memory: it must
// not have short batches by it.
Status ComparisonRun::find_room() {
  MC_TRY(const auto room, judge_.ask(worker::JudgeTimeRoomQuestion(), limits_.judge_s), "room");
  const double bytes = std::max(static_cast<double>(room.said.free_bytes),
                                kShareMin * static_cast<double>(room.said.total_bytes));
  calls_fit_ = std::max(1, memory_.calls_max(bytes));
  return ok();
}

// Kernels are loaded before anything is gated (device/gate.cc), and counted; then it is seen
// whether the forward can be enqueued, and how long a call takes.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::warm_up_process(Process& process) {
  MC_TRY(EarlyOutcome early, prepare(process, std::min(kWarmUpCalls, calls_fit_)), "memory");
  if (early) return early;
  Batch batch;
  process.timed.set_enqueued(false);
  for (const bool is_traced : {false, true}) {
    MC_TRY(early, sample(process, {.traced = is_traced}, batch), "first");
    if (early) return early;
  }
  process.cost.us = batch.done_us / batch.calls;
  // None takes the device less than a microsecond.
  process.cost.launches = std::clamp(static_cast<double>(num_launches(batch)) / batch.calls, 1.0,
                                     std::max(1.0, process.cost.us));
  for (int i = 0; i < kEnqueueTries; ++i) {
    process.timed.set_enqueued(true);
    MC_TRY(early, sample(process, {}, batch), "enqueued");
    if (early) return early;
    if (batch.is_valid) break;
  }
  if (batch.is_valid) process.cost.us = std::min(process.cost.us, batch.done_us / batch.calls);
  return early;
}

// The baseline first: a candidate's batches have its number of calls, unless it is faster.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::measure_out() {
  MC_TRY_VOID(find_room(), "timing");
  MC_TRY(EarlyOutcome early, measure_out(baseline()), "baseline");
  if (early) return early;
  MC_TRY(early, measure_out(candidate()), "candidate");
  if (candidate().calls < baseline().calls) {
    candidate().samples.least_us = kLeastShare * candidate().cost.us;
  }
  return early;
}

int ComparisonRun::calls_for(const Process& process) const {
  const int fit = std::min(std::max(calls_fit_, process.calls_room), process.calls_max);
  const CallCost& baseline = processes_[1].cost;
  return &process == &processes_[1]
             ? choose_calls(options_.batch, baseline, fit)
             : choose_calls_beside(options_.batch, process.cost, baseline, fit);
}

// Batches that find their size and their memory, and do not count.  One that blocks although small
// ones did not is too long for the device's queue; where a shorter one blocks too, or where a call
// keeps the host busy, none is enqueued from here on.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::measure_out(Process& process) {
  for (int rounds = 0; rounds < kMeasuringRounds;) {
    MC_TRY(EarlyOutcome early, prepare(process, calls_for(process)), "memory");
    if (early) return early;
    Batch batch;
    MC_TRY(early, sample(process, {}, batch), "batch");
    if (early) return early;
    if (!batch.is_valid) {
      const bool is_first = process.calls_max == kNoLimit;
      process.calls_max = is_first ? std::max(1, batch.calls / kShorter) : kNoLimit;
      process.timed.set_enqueued(is_first);
      continue;
    }
    ++rounds;
    process.cost.us = std::min(process.cost.us, batch.done_us / batch.calls);
    process.enqueue_call_us = std::min(process.enqueue_call_us, batch.enqueue_us / batch.calls);
    if (process.timed.is_enqueued() &&
        is_host_bound(options_.batch, process.enqueue_call_us, process.cost)) {
      process.timed.set_enqueued(false);
      process.cost.us = std::max(process.cost.us, process.enqueue_call_us);
    }
  }
  MC_CHECK(process.calls >= 1 && process.calls <= process.calls_room);
  return EarlyOutcome();
}

// ---- What counts --------------------------------------------------------------------------------

// Batches whose time does not count stand anywhere between those that count, as unlike them as two
// others.
Result<ComparisonRun::EarlyOutcome> ComparisonRun::take_all() {
  std::vector<Extra> left = extras();
  start_ = options_.clock.now();
  while (!left.empty() || !is_enough()) {
    const auto taken = static_cast<int>(candidate().samples.batches.size());
    const auto pairs_left = static_cast<size_t>(std::max(options_.pairs - taken, 0));
    EarlyOutcome early;
    if (is_enough() || random_() % (left.size() + pairs_left + 1) < left.size()) {
      MC_TRY(early, take(left.back()), "batch");
      left.pop_back();
    } else {
      MC_TRY(early, take_pair(), "batch");
    }
    if (early) return early;
  }
  return EarlyOutcome();
}

std::vector<ComparisonRun::Extra> ComparisonRun::extras() {
  std::vector<Extra> extras{Extra::kTracedBaseline};
  extras.insert(extras.end(), static_cast<size_t>(options_.batches_traced), Extra::kTraced);
  const bool has_late = candidate().is_candidate && num_late(candidate().calls) > 0;
  if (has_late)
    extras.insert(extras.end(), static_cast<size_t>(options_.batches_late), Extra::kLate);
  std::ranges::shuffle(extras, random_);
  return extras;
}

bool ComparisonRun::is_enough() const {
  const auto& own = processes_[0].samples.batches;
  const auto pairs = static_cast<int>(own.size());
  if (pairs < options_.pairs_min) return false;
  if (pairs >= options_.pairs_max ||
      options_.clock.now() - start_ > Clock::Seconds(options_.budget_s))
    return true;
  double timed_us = 0;
  for (const BatchSample& batch : own) timed_us += batch.done_us;
  return pairs >= options_.pairs && timed_us >= options_.timed_us;
}

Result<ComparisonRun::EarlyOutcome> ComparisonRun::take_pair() {
  std::array<Batch, 2> batches;
  const size_t first = random_() % 2;
  for (const size_t which : {first, 1 - first}) {
    MC_TRY(EarlyOutcome early, sample(processes_[which], {}, batches[which]), "pair");
    if (early) return early;
    if (batches[which].is_valid) continue;
    begin_anew_host_synchronous(processes_[which]);
    return EarlyOutcome();
  }
  if (nvml_ != nullptr) nvml_->look(clocks_);
  for (const size_t which : {0, 1}) {
    processes_[which].samples.batches.push_back(sample_of(batches[which]));
  }
  return EarlyOutcome();
}

Result<ComparisonRun::EarlyOutcome> ComparisonRun::take(Extra extra) {
  Process& process = extra == Extra::kTracedBaseline ? baseline() : candidate();
  const TimedProcess::Wanted wanted{.traced = extra != Extra::kLate, .late = extra == Extra::kLate};
  Batch batch;
  MC_TRY(EarlyOutcome early, sample(process, wanted, batch), "batch");
  if (early) return early;
  if (!batch.is_valid) process.timed.set_enqueued(true);  // Its time does not count.
  if (wanted.traced) {
    process.samples.traced.push_back({batch.kernels, batch.calls, batch.busy_us});
  }
  // What ran before the gate was opened would be free.
  if (process.is_candidate && !process.is_early && begins_early(batch.kernels)) {
    process.is_early = true;
    begin_anew_host_synchronous(process);
  }
  return EarlyOutcome();
}

// From here on the clock is around all that it does; what was sampled before does not count.
void ComparisonRun::begin_anew_host_synchronous(Process& process) {
  process.timed.set_enqueued(false);
  for (Process& each : processes_) each.samples.batches.clear();
  start_ = options_.clock.now();
}

Timed ComparisonRun::conclude() const {
  const Process& own = processes_[0];
  const Process& baseline = processes_[1];
  MC_CHECK(!is_open_ && static_cast<int>(own.samples.batches.size()) >= options_.pairs_min);
  Samples samples = own.samples;
  samples.is_enqueued = own.timed.is_enqueued();
  Comparison found = compare(samples, baseline.samples);
  Timed timed;
  task::Performance& result = timed.performance;
  result.time_us = found.time_us;
  result.time_eager_us = found.time_baseline_us;
  result.speedup_eager = found.speedup;
  result.time_kernels_us = busy_call_us(own.samples.traced);
  result.time_kernels_eager_us = busy_call_us(baseline.samples.traced);
  task::Timing& how = result.timing;
  how.mode = samples.is_enqueued ? "enqueued" : "host_synchronous";
  how.cache = "inputs_cold";
  how.batches = static_cast<int64_t>(samples.batches.size());
  how.calls = own.calls;
  how.calls_verified = verified_;
  how.calls_late = late_;
  how.clocks = clocks_;
  how.notes = std::move(found.notes);
  if (own.is_early) {
    how.notes.emplace_back(
        "work began without waiting for the caller's stream; timed with the host's part in it");
  }
  timed.work = work_;
  timed.traced = own.samples.traced;
  timed.claimed_us = found.claimed_us;
  timed.is_idle = own.is_candidate && own.is_idle && !baseline.is_idle;
  return timed;
}

}  // namespace mc::timing
