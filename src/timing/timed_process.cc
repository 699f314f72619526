// SPDX-License-Identifier: Apache-2.0
#include "timing/timed_process.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"
#include "execute/failure.h"

namespace mc::timing {
namespace {

using execute::Failure;
using execute::Garbled;

using Seconds = std::chrono::duration<double>;

constexpr int kSpinsPerCheck = 512;  // At a child's life, while its words are watched.
constexpr size_t kCallsMax = 4096;
constexpr size_t kFormsBytesMax = 8 << 20;  // With sixteen places, less than a message may have.
constexpr size_t kPlaceBytesMax = 256 << 10;
constexpr size_t kKernelsMax = 64;
constexpr size_t kNameBytesMax = 4096;
constexpr int64_t kCountMax = int64_t{1} << 40;
constexpr double kMicrosecondsMax = 1e10;

Error senseless(const char* what) {
  return {ErrorCode::kProtocol, std::string("malformed answer: ") + what};
}

// What a process may count, and what times it may tell.
bool is_count(int64_t value) { return 0 <= value && value <= kCountMax; }
bool is_time(double us) { return us >= 0 && us < kMicrosecondsMax; }

Result<std::array<int64_t, 3>> triple_of(const std::vector<int64_t>& values) {
  std::array<int64_t, 3> triple{};
  if (values.size() != triple.size() || !std::ranges::all_of(values, is_count)) {
    return senseless("three counts are none");
  }
  std::ranges::copy(values, triple.begin());
  return triple;
}

Result<TracedKernel> kernel_of(const worker::Kernel& said) {
  const bool has_counts = is_count(said.stream) && is_count(said.launches) && said.launches > 0 &&
                          is_count(said.early) && is_count(said.late) && is_count(said.registers) &&
                          is_count(said.shared_bytes);
  if (!has_counts || !is_time(said.us)) return senseless("a kernel's numbers make no sense");
  MC_TRY(const auto grid, triple_of(said.grid), "grid");
  MC_TRY(const auto block, triple_of(said.block), "block");
  return TracedKernel{said.name.substr(0, kNameBytesMax),
                      said.owner.substr(0, kNameBytesMax),
                      static_cast<uint64_t>(said.stream),
                      said.launches,
                      said.us,
                      said.early,
                      said.late,
                      grid,
                      block,
                      said.registers,
                      said.shared_bytes};
}

}  // namespace

// They are passed on to the judge, which must not choke on them.
Status take_outputs(const worker::BatchOutputs& said, Batch& batch) {
  const auto is_long = [](const worker::Tree& place) { return place.json.size() > kPlaceBytesMax; };
  if (said.forms.json.size() > kFormsBytesMax || said.places.size() > kCallsMax ||
      std::ranges::any_of(said.places, is_long)) {
    return senseless("too long to pass on");
  }
  batch.outputs = said;
  return ok();
}

Status take_times(const worker::ContestantTimeFinishAnswer& said, Batch& batch) {
  const double busy_us = said.busy_us.value_or(0);
  if (!is_time(said.events_us) || !is_time(busy_us)) return senseless("a time is none");
  batch.events_us = said.events_us;
  batch.busy_us = busy_us;
  for (const worker::Kernel& each : said.kernels.value_or(std::vector<worker::Kernel>())) {
    MC_TRY(TracedKernel kernel, kernel_of(each), "trace");
    if (batch.kernels.size() < kKernelsMax) batch.kernels.push_back(std::move(kernel));
  }
  return ok();
}

Stage<TimedProcess> TimedProcess::create(std::string name, Judge& judge, Session& session,
                                         const StageLimits& limits, const Clock& clock) {
  using Created = std::variant<TimedProcess, task::Outcome>;
  MC_TRY(ControlPage page, ControlPage::create(), "timing");
  TimedProcess process(std::move(name), judge, session, limits, clock, std::move(page));
  MC_TRY(auto attached, process.attach(worker::ContestantTimeGateQuestion(), process.page_.fd()),
         "gate");
  if (auto* outcome = std::get_if<task::Outcome>(&attached)) return Created(std::move(*outcome));
  return Created(std::move(process));
}

template <typename Question>
Stage<Nothing> TimedProcess::attach(const Question& question, const Fd& region) {
  using Attached = std::variant<Nothing, task::Outcome>;
  static_assert(Question::kHasRegion);
  MC_TRY(auto answered,
         said<Question>(session_.ask(question.to_json(), &region, Seconds(limits_.forward_s))),
         "attach");
  if (auto* outcome = std::get_if<task::Outcome>(&answered)) return Attached(std::move(*outcome));
  return Attached(Nothing{});
}

template <typename Question>
Stage<typename Question::Answer> TimedProcess::said(Answer answer) const {
  using Said = std::variant<typename Question::Answer, task::Outcome>;
  auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) {
    return Said(std::visit(Failure{limits_, "forward", limits_.forward_s, {}}, answer));
  }
  auto told = worker::told<Question>(std::move(*reply));
  if (!told) return Said(garbled(told.error()));
  return Said(std::move(told->said));
}

template <typename Question>
Result<worker::Told<Question>> TimedProcess::ask_judge(const Question& question) {
  return judge_.ask(question, limits_.judge_s);
}

Stage<Nothing> TimedProcess::prepare(const Room& room) {
  MC_CHECK(room.calls > 0 && room.arena_bytes >= 0);
  MC_TRY(const auto inputs,
         ask_judge(worker::JudgeTimeInputsQuestion{name_, room.calls, num_late(room.calls)}),
         "share");
  const worker::ContestantTimeInputsQuestion shown{.calls = room.calls,
                                                   .inputs = inputs.said.inputs,
                                                   .stride = inputs.said.stride,
                                                   .nbytes = inputs.said.nbytes,
                                                   .in_place = inputs.said.in_place};
  MC_TRY(auto attached, attach(shown, inputs.region), "inputs");
  if (std::holds_alternative<task::Outcome>(attached)) return attached;
  MC_TRY(const auto arena, ask_judge(worker::JudgeTimeArenaQuestion{name_, room.arena_bytes}),
         "share");
  return attach(worker::ContestantTimeArenaQuestion{arena.said.nbytes}, arena.region);
}

Stage<Batch> TimedProcess::run(const Wanted& wanted) {
  using Timed = std::variant<Batch, task::Outcome>;
  MC_CHECK(wanted.calls > 0 && wanted.snapshots >= 0);
  Batch batch;
  batch.calls = wanted.calls;
  session_.wake();  // Long before its time is taken.
  ++number_;
  replacement_ = {};
  late_ = wanted.late ? pick_late(wanted.calls, random_) : std::vector<int64_t>();
  MC_TRY_VOID(ask_judge(worker::JudgeTimeGenerateInputsQuestion{number_, wanted.calls,
                                                                num_late(wanted.calls)}),
              "inputs");
  MC_TRY(auto enqueued, enqueue(wanted, batch), "enqueue");
  if (auto* outcome = std::get_if<task::Outcome>(&enqueued)) return Timed(std::move(*outcome));

  MC_TRY_VOID(ask_judge(worker::JudgeTimePublishInputsQuestion{name_, wanted.calls}), "inputs");
  using Finish = worker::ContestantTimeFinishQuestion;
  session_.send(Finish().to_json(), nullptr, Seconds(limits_.forward_s));
  MC_TRY_VOID(time_batch(batch), "batch");
  // Before the process is heard again: it must not gain time by what it answers.
  const auto tells_all = [&] {
    return batch.outputs.places.size() == static_cast<size_t>(wanted.calls);
  };
  const bool told_all = !is_enqueued_ || tells_all();
  if (is_enqueued_ && told_all) MC_TRY_VOID(snapshot_outputs(wanted.snapshots, batch), "outputs");
  MC_TRY(auto finished, said<Finish>(session_.receive(Seconds(limits_.forward_s))), "finish");
  if (auto* outcome = std::get_if<task::Outcome>(&finished)) return Timed(std::move(*outcome));
  const auto& last = std::get<Finish::Answer>(finished);
  if (const Status taken = take_times(last, batch); !taken) return Timed(garbled(taken.error()));
  if (!is_enqueued_) {
    const Status taken = take_outputs(last.outputs.value_or(worker::BatchOutputs()), batch);
    if (!taken) return Timed(garbled(taken.error()));
  }
  if (!told_all || !tells_all()) {
    return Timed(garbled(senseless("a batch does not tell the outputs of each call")));
  }
  if (!is_enqueued_) MC_TRY_VOID(snapshot_outputs(wanted.snapshots, batch), "outputs");
  if (!batch.is_valid) is_enqueued_ = false;
  return Timed(std::move(batch));
}

task::Outcome TimedProcess::garbled(const Error& error) const {
  return Failure{limits_, "forward", 0, {}}(Garbled{error.message});
}

// A batch that does not come to its end behind the gate is let go.
Stage<Nothing> TimedProcess::enqueue(const Wanted& wanted, Batch& batch) {
  using Enqueued = std::variant<Nothing, task::Outcome>;
  using Question = worker::ContestantTimeEnqueueQuestion;
  if (wanted.traced) page_.trace(number_);
  const Question question{number_, wanted.calls, is_enqueued_};
  const auto start = clock_.now();
  session_.send(question.to_json(), nullptr, Seconds(limits_.forward_s));
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(limits_.queue_s));
  batch.is_valid = !is_enqueued_ || session_.has_news(limit);
  if (!batch.is_valid) page_.open_gate(number_);
  MC_TRY(auto answered, said<Question>(session_.receive(Seconds(limits_.forward_s))), "enqueue");
  if (is_enqueued_) batch.enqueue_us = clock_.microseconds_since(start);
  if (auto* outcome = std::get_if<task::Outcome>(&answered)) return Enqueued(std::move(*outcome));
  const auto& outputs = std::get<Question::Answer>(answered).outputs;
  const Status taken = take_outputs(outputs.value_or(worker::BatchOutputs()), batch);
  if (!taken) return Enqueued(garbled(taken.error()));
  return Enqueued(Nothing{});
}

// Opens the gate once the process waits for nothing else; from there to the end.
Status TimedProcess::time_batch(Batch& batch) {
  await([&] { return page_.ready() >= number_; });
  opened_ = clock_.now();
  page_.open_gate(number_);
  if (!late_.empty()) MC_TRY_VOID(replace_inputs(), "late inputs");
  await([&] { return page_.done() >= number_; });
  batch.done_us = replacement_.done_us = clock_.microseconds_since(opened_);
  batch.launches = page_.launches();
  batch.launches_own = page_.launches_own();
  return ok();
}

// Until it is, or the process says something, or its time is over.
void TimedProcess::await(const std::function<bool()>& reached) {
  const auto deadline = clock_.in(limits_.forward_s);
  for (int spins = 1; !reached(); ++spins) {
    if (spins % kSpinsPerCheck != 0) continue;
    if (session_.has_news(std::chrono::milliseconds(0)) || clock_.now() > deadline) return;
  }
}

Status TimedProcess::replace_inputs() {
  replacement_ = {.asked_us = clock_.microseconds_since(opened_)};
  MC_TRY_VOID(ask_judge(worker::JudgeTimeReplaceInputsQuestion{name_, late_}), "replace");
  replacement_.replaced_us = clock_.microseconds_since(opened_);
  return ok();
}

// Has the judge copy outputs: the last call's, which work that is put off would reach last, and
// some that nobody could foresee.  Of calls whose inputs were replaced, those that are late.
Status TimedProcess::snapshot_outputs(int snapshots, Batch& batch) {
  const auto calls = static_cast<int64_t>(batch.outputs.places.size());
  MC_CHECK(calls == batch.calls);
  worker::JudgeTimeSnapshotOutputsQuestion question{name_, batch.outputs.forms, {}};
  const auto pick = [&](int64_t call, bool is_late) {
    question.picks.push_back({call, batch.outputs.places[static_cast<size_t>(call)], is_late});
  };
  for (int i = 0; i < snapshots; ++i) {
    std::uniform_int_distribution<int64_t> any(0, calls - 1);
    const int64_t call = i == 0 ? calls - 1 : any(random_);
    if (std::ranges::find(late_, call) == late_.end()) pick(call, false);
  }
  for (const int64_t call : late_) {
    if (arrival_of(call, batch.calls, replacement_) == Arrival::kLate) pick(call, true);
  }
  MC_TRY_VOID(ask_judge(question), "snapshot");
  if (snapshots > 0) batch.copied_us = clock_.microseconds_since(opened_);
  return ok();
}

Result<Opinion> TimedProcess::verify() {
  MC_TRY(auto told, ask_judge(worker::JudgeTimeVerifyQuestion{name_}), "verify");
  const Opinion opinion{std::move(told.said.problem), {told.said.late, told.said.ignored}};
  return opinion;
}

}  // namespace mc::timing
