// SPDX-License-Identifier: Apache-2.0
#include "timing/comparison_run.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mc::timing {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr int kWarmUpCalls = 2;
constexpr double kManyLooksBytesMax = 64 << 20;  // Of a call's outputs.
constexpr int kGatedTries = 2;
constexpr double kShareMin = 0.125;  // Of the device's memory.
constexpr int kQueueDoubt = 8;       // Blocked bursts may be so much shorter than others, no more.
constexpr double kHeldUp = 1.5;      // A host that takes so much more than it did at least.
constexpr int kPairsFew = 3;         // Of one so slow that it would keep the device from others.

double bytes_of(const Json& json, const char* member) { return json.at(member).get<double>(); }

std::string exception_of(const task::Outcome& outcome) {
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed == nullptr || !crashed->exception) return "";
  return ": " + crashed->exception->type + ": " + crashed->exception->message;
}

bool begins_early(const BurstTime& burst) {
  return std::ranges::any_of(burst.kernels, [](const auto& kernel) { return kernel.early > 0; });
}

}  // namespace

Timing::Timing(Judge& judge, const StageLimits& limits, const TimingOptions& options,
               const Nvml* nvml)
    : judge_(judge),
      limits_(limits),
      options_(options),
      nvml_(nvml),
      random_(options.seed),
      charges_(options.charge) {}

Timing::~Timing() { (void)close(); }

Status Timing::close() {
  if (!std::exchange(is_open_, false)) return ok();
  MC_TRY_VOID(judge_.ask(R"({"op": "time", "do": "close"})", nullptr, limits_.judge_s), "timing");
  return ok();
}

Result<Timing::Decided> Timing::warm_up(Session& candidate, Session& baseline) {
  MC_TRY_VOID(plan(), "timing");
  MC_TRY(Decided decided, open_arms(candidate, baseline), "timing");
  if (decided) return decided;
  MC_TRY_VOID(find_room(), "timing");
  for (Arm& arm : arms_) {
    MC_TRY(decided, warm_up_arm(arm), "warm-up");
    if (decided) return decided;
  }
  return Decided();
}

Stage<Timed> Timing::run() {
  using Ran = std::variant<Timed, task::Outcome>;
  Timed timed;
  MC_TRY(Decided decided, settle(), "warm-up");
  if (!decided) {
    MC_TRY(decided, take_all(), "timing");
  }
  MC_TRY_VOID(close(), "timing");
  if (decided) return Ran(std::move(*decided));
  conclude(timed);
  return Ran(std::move(timed));
}

Status Timing::plan() {
  const Json question{{"op", "time"}, {"do", "plan"}, {"seed", options_.seed}};
  is_open_ = true;
  MC_TRY(const Reply reply, judge_.ask(question.dump(), nullptr, limits_.judge_s), "plan");
  const Json plan = Json::parse(reply.json);
  room_.call = {bytes_of(plan, "inputs_bytes"), bytes_of(plan, "outputs_bytes")};
  work_ = {room_.call.inputs + room_.call.outputs, bytes_of(plan, "operations"),
           plan.at("is_half").get<bool>()};
  return ok();
}

// A baseline runs the reference alone: where it fails, the machine is to blame.
Result<Timing::Decided> Timing::fate(const Arm& arm, const task::Outcome& outcome) const {
  if (arm.is_candidate) return Decided(outcome);
  return Error{ErrorCode::kUnavailable, std::string("the baseline ended as '") +
                                            task::outcome_name(outcome) + "'" +
                                            exception_of(outcome)};
}

Result<Timing::Decided> Timing::open_arms(Session& candidate, Session& baseline) {
  for (Session* session : {&candidate, &baseline}) {
    const bool is_candidate = session == &candidate;
    MC_TRY(auto created,
           TimedArm::create(is_candidate ? "candidate" : "baseline", judge_, *session, limits_),
           "timing");
    if (auto* outcome = std::get_if<task::Outcome>(&created)) {
      if (is_candidate && !options_.is_trusted) return Decided(std::move(*outcome));
      return Error{ErrorCode::kUnavailable, "the baseline does not answer"};
    }
    arms_.push_back({std::move(std::get<TimedArm>(created)), is_candidate && !options_.is_trusted});
  }
  return Decided();
}

// Memory that has the room already is used again: what a process was given stays mapped there.
Result<Timing::Decided> Timing::prepare(Arm& arm, int calls) {
  arm.calls = calls;
  if (calls <= arm.calls_room) return Decided();
  arm.calls_room = calls;
  const auto arena = static_cast<int64_t>(room_.arena_bytes(calls));
  MC_TRY(auto prepared, arm.timed.prepare({calls, arena}), "memory");
  auto* outcome = std::get_if<task::Outcome>(&prepared);
  return outcome == nullptr ? Decided() : fate(arm, *outcome);
}

// One burst with a look at what it returned.  What a look at a baseline's takes is what one at a
// candidate's may take.
Result<Timing::Decided> Timing::sample(Arm& arm, Traced traced, BurstTime& burst) {
  const int looks = options_.is_trusted                       ? 0
                    : room_.call.outputs < kManyLooksBytesMax ? options_.looks
                                                              : 1;
  const bool is_beside = arms_[0].is_candidate && !arm.is_candidate;
  if (is_beside) arms_[0].timed.rest();  // It could keep the device busy meanwhile.
  MC_TRY(auto timed, arm.timed.burst({arm.calls, traced == Traced::kYes, looks}), "burst");
  if (auto* outcome = std::get_if<task::Outcome>(&timed)) return fate(arm, *outcome);
  burst = std::move(std::get<BurstTime>(timed));
  const int64_t launches = arm.is_candidate ? burst.launches_own : burst.launches;
  arm.is_idle = arm.is_idle || (burst.is_valid && launches < burst.calls);
  // Where the burst blocked, the gate opened before there were inputs.
  if (!arm.is_candidate || !burst.is_valid) return Decided();
  MC_TRY(const std::string problem, arm.timed.verify(), "verify");
  verified_ += std::min(looks, arm.calls);
  return problem.empty() ? Decided() : Decided(wrong_in_a_series(problem));
}

task::Outcome Timing::wrong_in_a_series(const std::string& problem) const {
  task::Trial trial;
  trial.shape = judge_.plan().shapes.at(0).label;
  trial.distribution = "timed";
  task::OutputCheck check;
  check.path = "output";
  check.problem = "timed";
  check.detail = "in a series of calls, each on inputs of its own: " + problem;
  trial.checks.push_back(std::move(check));
  return task::Wrong{0, false, {std::move(trial)}};
}

int Timing::calls_wanted(const Arm& arm) const {
  const int fit = std::max(calls_fit_, arm.calls_room);
  return choose_calls(options_.burst, {arm.call_us, arm.launches, fit});
}

int Timing::calls_for(const Arm& arm) const { return std::min(calls_wanted(arm), arm.calls_limit); }

// A process that keeps most of the device for itself ends as one that is short of memory: it must
// not have short bursts by it.
Status Timing::find_room() {
  const std::string question = R"({"op": "time", "do": "room"})";
  MC_TRY(const Reply reply, judge_.ask(question, nullptr, limits_.judge_s), "room");
  const Json room = Json::parse(reply.json);
  const double bytes =
      std::max(bytes_of(room, "free_bytes"), kShareMin * bytes_of(room, "total_bytes"));
  calls_fit_ = std::max(1, room_.calls_max(bytes));
  return ok();
}

Result<Timing::Decided> Timing::settle() {
  MC_TRY_VOID(find_room(), "timing");
  for (Arm& arm : arms_) {
    MC_TRY(Decided decided, settle_arm(arm), "warm-up");
    if (decided) return decided;
  }
  return Decided();
}

// A burst of the size of those that count, which finds its memory and is not noted.  One that
// blocks although small ones did not is too long for the device's queue.
Result<Timing::Decided> Timing::settle_arm(Arm& arm) {
  for (;;) {
    MC_TRY(Decided decided, prepare(arm, calls_for(arm)), "memory");
    if (decided) return decided;
    BurstTime burst;
    MC_TRY(decided, sample(arm, Traced::kNo, burst), "burst");
    if (decided) return decided;
    if (burst.is_valid) {
      learn(arm, burst);
      if (!is_short(arm)) return decided;
    } else if (arm.calls == 1) {
      arm.open();
    } else {
      arm.timed.set_gated(true);
      arm.calls_limit = std::max(1, arm.calls / 4);
    }
  }
}

// What the clock says of a call: an upper bound of its time, and of its launches, none of which
// takes the device less than a microsecond.  A queue that holds so much less than others do is a
// forward that waits for the device where it likes.
void Timing::learn(Arm& arm, const BurstTime& burst) const {
  arm.call_us = burst.bracket_us / arm.calls;
  arm.launches = std::clamp(arm.launches, 1.0, std::max(1.0, arm.call_us));
  if (arm.calls_limit < calls_wanted(arm) / kQueueDoubt) arm.open();
}

// Whether the clock finds bursts much shorter than wanted, whatever the process says of its time
// and its launches.
bool Timing::is_short(const Arm& arm) const { return calls_for(arm) >= 2 * arm.calls; }

// A short burst is void, as are all before it, and those that follow are longer.  What a process
// gains by what it claims is so much a burst: it must not have short ones by having been slow, or
// blocked, until they were measured out.
Result<Timing::Decided> Timing::lengthen(Arm& arm, BurstTime& burst) {
  learn(arm, burst);
  if (!is_short(arm)) return Decided();
  burst.is_valid = false;
  for (Arm& each : arms_) each.series.samples.clear();
  return prepare(arm, calls_for(arm));
}

// Kernels are loaded before anything is gated (device/gate.cc), and counted; then it is seen
// whether the forward can be gated, and how long a call takes.
Result<Timing::Decided> Timing::warm_up_arm(Arm& arm) {
  MC_TRY(Decided decided, prepare(arm, std::min(kWarmUpCalls, calls_fit_)), "memory");
  if (decided) return decided;
  BurstTime burst;
  arm.timed.set_gated(false);
  MC_TRY(decided, sample(arm, Traced::kNo, burst), "open");
  if (decided) return decided;
  MC_TRY(decided, sample(arm, Traced::kYes, burst), "traced");
  if (decided) return decided;
  int64_t launches = 0;
  for (const TracedKernel& kernel : burst.kernels) launches += kernel.launches;
  arm.launches = std::max(1.0, static_cast<double>(launches) / arm.calls);
  for (int i = 0; i < kGatedTries; ++i) {
    arm.timed.set_gated(true);
    MC_TRY(decided, sample(arm, Traced::kNo, burst), "gated");
    if (decided) return decided;
    if (burst.is_valid) break;
  }
  if (!burst.is_valid) {
    MC_TRY(decided, sample(arm, Traced::kNo, burst), "open");
  }
  learn(arm, burst);
  return decided;
}

// Until the last traced burst, too, finds nothing that voids those before it.
Result<Timing::Decided> Timing::take_all() {
  do {
    MC_TRY(Decided decided, take_pairs(), "pairs");
    if (decided) return decided;
    MC_TRY(decided, trace_at_the_end(), "trace");
    if (decided) return decided;
  } while (arms_[0].series.samples.empty());
  return Decided();
}

Result<Timing::Decided> Timing::trace_at_the_end() {
  for (Arm& arm : arms_) {
    MC_TRY(Decided decided, trace(arm), "trace");
    if (decided) return decided;
  }
  return Decided();
}

// Bursts that are traced stand anywhere between those that count, as unlike them as two others.
Result<Timing::Decided> Timing::take_pairs() {
  const auto start = Clock::now();
  std::uniform_int_distribution<int> any(0, options_.pairs_min - 1);
  std::vector<int> traced_before(static_cast<size_t>(options_.bursts_traced));
  std::ranges::generate(traced_before, [&] { return any(random_); });
  for (int taken = 0;;) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    if (is_enough(passed.count())) break;
    for (auto traced = std::ranges::count(traced_before, taken); traced > 0; --traced) {
      MC_TRY(Decided decided, trace(arms_[0]), "trace");
      if (decided) return decided;
    }
    std::erase(traced_before, taken);
    std::array<BurstTime, 2> bursts;
    MC_TRY(Decided decided, sample_both(bursts), "burst");
    if (decided) return decided;
    const bool is_void = !bursts[0].is_valid || !bursts[1].is_valid;
    const bool may_retake = retaken_ < options_.pairs && passed.count() < options_.budget_s;
    if (is_void || (is_doubtful(bursts) && may_retake)) {
      ++retaken_;
      continue;
    }
    for (size_t which : {0, 1}) {
      arms_[which].series.samples.push_back(reading_of(arms_[which], bursts[which]));
    }
    ++taken;
  }
  return Decided();
}

Result<Timing::Decided> Timing::sample_both(std::array<BurstTime, 2>& bursts) {
  const size_t first = random_() % 2;
  for (const size_t which : {first, 1 - first}) {
    Arm& arm = arms_[which];
    BurstTime& burst = bursts[which];
    MC_TRY(Decided decided, sample(arm, Traced::kNo, burst), "burst");
    if (decided) return decided;
    MC_TRY(decided, burst.is_valid ? lengthen(arm, burst) : recover(arm), "burst");
    if (decided) return decided;
  }
  if (nvml_ != nullptr) nvml_->look(clocks_);
  return Decided();
}

// After a burst that blocked although those before it did not.  Shorter ones may fit into the
// device's queue; who blocks again and again is open from here on, and begins anew.
Result<Timing::Decided> Timing::recover(Arm& arm) {
  if (++arm.blocked <= kGatedTries && arm.calls > 1) {
    arm.timed.set_gated(true);
    arm.calls_limit = arm.calls / 2;
    return prepare(arm, arm.calls_limit);
  }
  return begin_anew_open(arm);
}

Result<Timing::Decided> Timing::begin_anew_open(Arm& arm) {
  arm.open();
  for (Arm& each : arms_) each.series.samples.clear();
  return prepare(arm, calls_for(arm));
}

void Timing::Arm::open() {
  timed.set_gated(false);
  calls_limit = std::numeric_limits<int>::max();
}

bool Timing::is_enough(double passed_s) const {
  const Series& own = arms_[0].series;
  const auto pairs = static_cast<int>(own.samples.size());
  if (pairs < options_.pairs_min) return pairs >= kPairsFew && passed_s > 2 * options_.budget_s;
  if (pairs >= options_.pairs_max || passed_s > options_.budget_s) return true;
  if (pairs < options_.pairs) return false;
  // A judge that was late each time may be prompt yet, before anybody is charged for it.
  if (!charges_.look_confirms(soonest_seen(charges_, own))) return false;
  const double timed_us =
      std::accumulate(own.samples.begin(), own.samples.end(), 0.0,
                      [](double sum, const BurstReading& burst) { return sum + burst.events_us; });
  return timed_us >= options_.timed_us || is_precise(options_.spread, own, arms_[1].series);
}

BurstReading Timing::reading_of(const Arm& arm, const BurstTime& burst) {
  BurstReading reading{burst.events_us, burst.bracket_us, burst.looked_us, burst.queue_us,
                       burst.calls};
  reading.launches = arm.launches;
  reading.is_trusted = !arm.is_candidate;
  return reading;
}

// Whether the supervisor or a process was held up, as a busy machine does at times.  An arm that is
// held up all the time is not spared: after so many pairs were taken again, they count.  Nor is one
// that keeps its host busy by nature, as a loop of many launches does.
bool Timing::is_doubtful(const std::array<BurstTime, 2>& bursts) {
  charges_.note_baseline(reading_of(arms_[1], bursts[1]));
  bool is_doubtful = false;
  for (size_t which : {0, 1}) {
    Arm& arm = arms_[which];
    const BurstReading reading = reading_of(arm, bursts[which]);
    arm.queue_us_least = std::min(arm.queue_us_least, reading.queue_us / reading.calls);
    is_doubtful |= !charges_.confirms(reading);
    is_doubtful |= charges_.host_us(reading) > kHeldUp * arm.queue_us_least;
  }
  return is_doubtful;
}

Result<Timing::Decided> Timing::trace(Arm& arm) {
  BurstTime burst;
  MC_TRY(Decided decided, sample(arm, Traced::kYes, burst), "trace");
  if (decided) return decided;
  arm.series.traced.push_back({burst.kernels, arm.calls, burst.busy_us});
  if (!burst.is_valid) arm.timed.set_gated(true);  // Its time does not count.
  if (!arm.is_candidate || arm.is_early || !begins_early(burst)) return Decided();
  // What ran before the gate was opened would be free: open bursts have the clock around all of it.
  arm.is_early = true;
  return begin_anew_open(arm);
}

void Timing::conclude(Timed& timed) const {
  const Series& own = arms_[0].series;
  const Comparison found = compare(charges_, options_.spread, own, arms_[1].series);
  task::Performance& result = timed.performance;
  result.time_us = found.time_us;
  result.time_eager_us = found.time_baseline_us;
  result.speedup_eager = found.speedup;
  result.timing.mode = arms_[0].timed.is_gated() ? "gated" : "open";
  result.timing.cache = "inputs_cold";
  result.timing.bursts = static_cast<int64_t>(own.samples.size());
  result.timing.calls = arms_[0].calls;
  result.timing.calls_verified = verified_;
  result.timing.gap_us = found.gap_us;
  result.timing.gap_eager_us = found.gap_baseline_us;
  result.timing.retaken = retaken_;
  for (const BurstReading& burst : own.samples) {
    double& most_us = result.timing.clock_excess_us;
    most_us = std::max(most_us, charges_.clock_excess_us(burst));
  }
  result.timing.look_excess_us =
      std::max(charges_.look_excess_us(soonest_seen(charges_, own)), 0.0);
  result.timing.clocks = clocks_;
  result.timing.notes = notes_on(charges_, own);
  if (!trace_confirms({}, found.claimed_us, own)) {
    result.timing.notes.push_back(
        fmt::format("its kernels took {:.3g} us a call where they were traced, which counts; "
                    "without being traced {:.3g} us",
                    busy_call_us(own.traced), found.claimed_us));
  }
  if (arms_[0].is_early) {
    result.timing.notes.emplace_back(
        "work began without waiting for the caller's stream; timed with the host's part in it");
  }
  timed.work = work_;
  timed.traced = own.traced;
  timed.claimed_us = found.claimed_us;
  timed.is_idle = arms_[0].is_candidate && arms_[0].is_idle && !arms_[1].is_idle;
}

}  // namespace mc::timing
