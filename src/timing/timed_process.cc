// SPDX-License-Identifier: Apache-2.0
#include "timing/timed_process.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "execute/failure.h"

namespace mc::timing {
namespace {

using execute::Failure;
using execute::Garbled;

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kSpinsPerCheck = 512;  // At a child's life, while its words are watched.
constexpr size_t kCallsMax = 4096;
constexpr size_t kFormsBytesMax = 8 << 20;  // With sixteen places, less than a message may have.
constexpr size_t kPlaceBytesMax = 256 << 10;
constexpr size_t kKernelsMax = 64;
constexpr size_t kNameBytesMax = 4096;
constexpr uint64_t kCountMax = uint64_t{1} << 40;
constexpr double kMicrosecondsMax = 1e10;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A count that a process claims: from `least` to kCountMax, or a Json::exception.
int64_t count_of(const Json& value, uint64_t least = 0) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() < least ||
      value.get<uint64_t>() > kCountMax) {
    throw Json::type_error::create(302, "a count is no sensible number", &value);
  }
  return value.get<int64_t>();
}

double microseconds_of(const Json& value) {
  const auto us = value.get<double>();
  if (!(us >= 0 && us < kMicrosecondsMax)) {
    throw Json::type_error::create(302, "a time is no sensible number", &value);
  }
  return us;
}

// To the judge, about a process.
std::string question_of(const char* operation, const std::string& process, Json body) {
  body.update({{"op", "time"}, {"do", operation}, {"process", process}});
  return text_of(body);
}

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// What is passed on to the judge, whom it must not choke.
std::string passed_on(const Json& json, size_t bytes_max) {
  std::string text = text_of(json);
  if (text.size() > bytes_max) throw Json::other_error::create(502, "too long to pass on", &json);
  return text;
}

std::array<int64_t, 3> triple_of(const Json& values) {
  std::array<int64_t, 3> triple{};
  for (size_t i = 0; i < triple.size(); ++i) triple[i] = count_of(values.at(i));
  return triple;
}

TracedKernel kernel_of(const Json& json) {
  TracedKernel kernel;
  kernel.name = json.at("name").get<std::string>().substr(0, kNameBytesMax);
  kernel.owner = json.at("owner").get<std::string>().substr(0, kNameBytesMax);
  kernel.stream = static_cast<uint64_t>(count_of(json.at("stream")));
  kernel.launches = count_of(json.at("launches"), 1);
  kernel.time_us = microseconds_of(json.at("us"));
  kernel.early = count_of(json.at("early"));
  kernel.late = count_of(json.at("late"));
  kernel.grid = triple_of(json.at("grid"));
  kernel.block = triple_of(json.at("block"));
  kernel.registers = count_of(json.at("registers"));
  kernel.shared_bytes = count_of(json.at("shared_bytes"));
  return kernel;
}

}  // namespace

Result<Batch> decode_batch(std::string_view answer) {
  try {
    const Json json = Json::parse(answer);
    Batch batch;
    batch.events_us = microseconds_of(json.value("events_us", Json(0.0)));
    batch.busy_us = microseconds_of(json.value("busy_us", Json(0.0)));
    if (const auto outputs = json.find("outputs"); outputs != json.end()) {
      batch.forms = passed_on(outputs->at("forms"), kFormsBytesMax);
      for (const Json& place : outputs->at("places")) {
        if (batch.places.size() == kCallsMax) break;
        batch.places.push_back(passed_on(place, kPlaceBytesMax));
      }
    }
    for (const Json& kernel : json.value("kernels", Json::array())) {
      if (batch.kernels.size() < kKernelsMax) batch.kernels.push_back(kernel_of(kernel));
    }
    return batch;
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string("malformed answer: ") + failure.what()};
  }
}

Stage<TimedProcess> TimedProcess::create(std::string name, Judge& judge, Session& session,
                                         const StageLimits& limits) {
  using Created = std::variant<TimedProcess, task::Outcome>;
  MC_TRY(ControlPage page, ControlPage::create(), "timing");
  TimedProcess process(std::move(name), judge, session, limits, std::move(page));
  MC_TRY(auto attached,
         process.ask(R"({"op": "time", "do": "attach", "what": "gate"})", &process.page_.fd()),
         "gate");
  if (auto* outcome = std::get_if<task::Outcome>(&attached)) return Created(std::move(*outcome));
  return Created(std::move(process));
}

Stage<Reply> TimedProcess::ask(const std::string& question, const Fd* region) {
  return outcome_of(session_.ask(question, region, Seconds(limits_.forward_s)));
}

Stage<Reply> TimedProcess::outcome_of(Answer answer) {
  using Asked = std::variant<Reply, task::Outcome>;
  if (auto* reply = std::get_if<Reply>(&answer)) return Asked(std::move(*reply));
  return Asked(std::visit(Failure{limits_, "forward", limits_.forward_s, {}}, answer));
}

Result<Reply> TimedProcess::ask_judge(const std::string& question) {
  return judge_.ask(question, nullptr, limits_.judge_s);
}

Stage<Nothing> TimedProcess::prepare(const Room& room) {
  using Prepared = std::variant<Nothing, task::Outcome>;
  MC_CHECK(room.calls > 0 && room.arena_bytes >= 0);
  const Json inputs{{"calls", room.calls}, {"late", num_late(room.calls)}};
  const Json arena{{"nbytes", room.arena_bytes}};
  for (const auto& [what, body] : {std::pair("inputs", inputs), std::pair("arena", arena)}) {
    MC_TRY(const Reply shared, ask_judge(question_of(what, name_, body)), "share");
    Json attach = Json::parse(shared.json);
    attach.update({{"op", "time"}, {"do", "attach"}, {"what", what}, {"calls", room.calls}});
    MC_TRY(auto attached, ask(text_of(attach), &shared.region), "attach");
    if (auto* outcome = std::get_if<task::Outcome>(&attached)) {
      return Prepared(std::move(*outcome));
    }
  }
  return Prepared(Nothing{});
}

Stage<Batch> TimedProcess::run(const Wanted& wanted) {
  using Timed = std::variant<Batch, task::Outcome>;
  MC_CHECK(wanted.calls > 0);
  Batch batch;
  batch.calls = wanted.calls;
  session_.wake();  // Long before its time is taken.
  ++number_;
  late_ = wanted.late ? pick_late(wanted.calls, random_) : std::vector<int64_t>();
  const Json calls{{"calls", wanted.calls}, {"late", num_late(wanted.calls)}, {"number", number_}};
  MC_TRY_VOID(ask_judge(question_of("generate_inputs", name_, calls)), "inputs");
  MC_TRY(auto enqueued, enqueue(wanted, batch), "enqueue");
  if (auto* outcome = std::get_if<task::Outcome>(&enqueued)) return Timed(std::move(*outcome));
  const auto first = decode_batch(std::get<Reply>(enqueued).json);
  if (!first) return garbled(first.error());

  MC_TRY_VOID(ask_judge(question_of("publish_inputs", name_, calls)), "inputs");
  session_.send(R"({"op": "time", "do": "finish"})", nullptr, Seconds(limits_.forward_s));
  MC_TRY_VOID(time_batch(batch), "batch");
  // Before the process is heard again: it must not gain time by what it answers.
  const auto num_calls = static_cast<size_t>(wanted.calls);
  const bool tells_all = !is_enqueued_ || first->places.size() == num_calls;
  if (is_enqueued_ && tells_all) {
    MC_TRY_VOID(snapshot_outputs(*first, wanted.snapshots, batch), "outputs");
  }
  MC_TRY(auto finished, outcome_of(session_.receive(Seconds(limits_.forward_s))), "finish");
  if (auto* outcome = std::get_if<task::Outcome>(&finished)) return Timed(std::move(*outcome));
  auto last = decode_batch(std::get<Reply>(finished).json);
  if (!last) return garbled(last.error());
  if (!tells_all || (!is_enqueued_ && last->places.size() != num_calls)) {
    return garbled({ErrorCode::kProtocol, "a batch does not tell the outputs of each call"});
  }
  if (!is_enqueued_) MC_TRY_VOID(snapshot_outputs(*last, wanted.snapshots, batch), "outputs");

  batch.events_us = last->events_us;
  batch.busy_us = last->busy_us;
  batch.kernels = std::move(last->kernels);
  if (!batch.is_valid) is_enqueued_ = false;
  return Timed(std::move(batch));
}

Stage<Batch> TimedProcess::garbled(const Error& error) const {
  return std::variant<Batch, task::Outcome>(
      Failure{limits_, "forward", 0, {}}(Garbled{error.message}));
}

// A batch that does not come to its end behind the gate is let go.
Stage<Reply> TimedProcess::enqueue(const Wanted& wanted, Batch& batch) {
  if (wanted.traced) page_.trace(number_);
  const Json question{{"op", "time"},
                      {"do", "enqueue"},
                      {"number", number_},
                      {"calls", wanted.calls},
                      {"enqueued", is_enqueued_}};
  const auto start = Clock::now();
  session_.send(text_of(question), nullptr, Seconds(limits_.forward_s));
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(limits_.queue_s));
  batch.is_valid = !is_enqueued_ || session_.has_news(limit);
  if (!batch.is_valid) page_.open_gate(number_);
  auto answer = outcome_of(session_.receive(Seconds(limits_.forward_s)));
  if (is_enqueued_) batch.enqueue_us = microseconds_since(start);
  return answer;
}

// Opens the gate once the process waits for nothing else; from there to the end.
Status TimedProcess::time_batch(Batch& batch) {
  await([&] { return page_.ready() >= number_; });
  opened_ = Clock::now();
  page_.open_gate(number_);
  if (!late_.empty()) MC_TRY_VOID(replace_inputs(), "late inputs");
  await([&] { return page_.done() >= number_; });
  batch.done_us = replacement_.done_us = microseconds_since(opened_);
  batch.launches = page_.launches();
  batch.launches_own = page_.launches_own();
  return ok();
}

// Until it is, or the process says something, or its time is over.
void TimedProcess::await(const std::function<bool()>& reached) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(limits_.forward_s));
  for (int spins = 1; !reached(); ++spins) {
    if (spins % kSpinsPerCheck != 0) continue;
    if (session_.has_news(std::chrono::milliseconds(0)) || Clock::now() > deadline) return;
  }
}

Status TimedProcess::replace_inputs() {
  replacement_ = {.asked_us = microseconds_since(opened_)};
  MC_TRY_VOID(ask_judge(question_of("replace_inputs", name_, {{"calls", late_}})), "replace");
  replacement_.replaced_us = microseconds_since(opened_);
  return ok();
}

// Has the judge copy outputs: the last call's, which work that is put off would reach last, and
// some that nobody could foresee.  Of calls whose inputs were replaced, those that are late.
Status TimedProcess::snapshot_outputs(const Batch& answer, int snapshots, Batch& batch) {
  const auto calls = static_cast<int64_t>(answer.places.size());
  Json picks = Json::array();
  const auto pick = [&](int64_t call, bool is_late) {
    const std::string& place = answer.places[static_cast<size_t>(call)];
    picks.push_back({{"call", call}, {"place", Json::parse(place)}, {"late", is_late}});
  };
  for (int i = 0; i < snapshots && calls > 0; ++i) {
    std::uniform_int_distribution<int64_t> any(0, calls - 1);
    const int64_t call = i == 0 ? calls - 1 : any(random_);
    if (std::ranges::find(late_, call) == late_.end()) pick(call, false);
  }
  for (const int64_t call : late_) {
    if (arrival_of(call, batch.calls, replacement_) == Arrival::kLate) pick(call, true);
  }
  const Json question{{"forms", Json::parse(answer.forms)}, {"picks", picks}};
  MC_TRY_VOID(ask_judge(question_of("snapshot_outputs", name_, question)), "snapshot");
  if (snapshots > 0) batch.copied_us = microseconds_since(opened_);
  return ok();
}

Result<Opinion> TimedProcess::verify() {
  MC_TRY(const Reply reply, ask_judge(question_of("verify", name_, Json::object())), "verify");
  const Json answer = Json::parse(reply.json);
  Opinion opinion;
  opinion.late = {answer.at("late").get<int64_t>(), answer.at("ignored").get<int64_t>()};
  if (!answer.at("passed").get<bool>()) opinion.problem = answer.at("problem").get<std::string>();
  return opinion;
}

}  // namespace mc::timing
