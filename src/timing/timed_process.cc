// SPDX-License-Identifier: Apache-2.0
#include "timing/timed_process.h"

#include <nlohmann/json.hpp>

#include "execute/failure.h"

namespace mc::timing {
namespace {

using execute::Failure;
using execute::Garbled;

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kSpinsPerLook = 512;  // At a child's life, while its words are watched.
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

Result<BurstTime> decode_burst(std::string_view answer) {
  try {
    const Json json = Json::parse(answer);
    BurstTime burst;
    burst.events_us = microseconds_of(json.value("events_us", Json(0.0)));
    burst.busy_us = microseconds_of(json.value("busy_us", Json(0.0)));
    if (const auto outputs = json.find("outputs"); outputs != json.end()) {
      burst.forms = passed_on(outputs->at("forms"), kFormsBytesMax);
      for (const Json& place : outputs->at("places")) {
        if (burst.places.size() == kCallsMax) break;
        burst.places.push_back(passed_on(place, kPlaceBytesMax));
      }
    }
    for (const Json& kernel : json.value("kernels", Json::array())) {
      if (burst.kernels.size() < kKernelsMax) burst.kernels.push_back(kernel_of(kernel));
    }
    return burst;
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string("malformed answer: ") + failure.what()};
  }
}

Stage<TimedArm> TimedArm::create(std::string name, Judge& judge, Session& session,
                                 const StageLimits& limits) {
  using Created = std::variant<TimedArm, task::Outcome>;
  MC_TRY(ClockPage page, ClockPage::create(), "timing");
  TimedArm arm(std::move(name), judge, session, limits, std::move(page));
  MC_TRY(auto attached,
         arm.ask(R"({"op": "time", "do": "attach", "what": "gate"})", &arm.page_.fd()), "gate");
  if (auto* outcome = std::get_if<task::Outcome>(&attached)) return Created(std::move(*outcome));
  return Created(std::move(arm));
}

Stage<Reply> TimedArm::ask(const std::string& question, const Fd* region) {
  return outcome_of(session_.ask(question, region, Seconds(limits_.forward_s)));
}

Stage<Reply> TimedArm::outcome_of(Answer answer) {
  using Asked = std::variant<Reply, task::Outcome>;
  if (auto* reply = std::get_if<Reply>(&answer)) return Asked(std::move(*reply));
  return Asked(std::visit(Failure{limits_, "forward", limits_.forward_s, {}}, answer));
}

Stage<Nothing> TimedArm::prepare(const Room& room) {
  using Prepared = std::variant<Nothing, task::Outcome>;
  const Json inputs_question{
      {"op", "time"}, {"do", "inputs"}, {"arm", name_}, {"calls", room.calls}};
  const Json arena_question{
      {"op", "time"}, {"do", "arena"}, {"arm", name_}, {"nbytes", room.arena_bytes}};
  for (const Json& question : {inputs_question, arena_question}) {
    MC_TRY(const Reply shared, judge_.ask(text_of(question), nullptr, limits_.judge_s), "share");
    Json attach = Json::parse(shared.json);
    attach.update(
        {{"op", "time"}, {"do", "attach"}, {"what", question.at("do")}, {"calls", room.calls}});
    MC_TRY(auto attached, ask(text_of(attach), &shared.region), "attach");
    if (auto* outcome = std::get_if<task::Outcome>(&attached)) {
      return Prepared(std::move(*outcome));
    }
  }
  return Prepared(Nothing{});
}

Stage<BurstTime> TimedArm::burst(const Wanted& wanted) {
  using Timed = std::variant<BurstTime, task::Outcome>;
  const uint32_t number = ++number_;
  BurstTime burst;
  burst.calls = wanted.calls;
  session_.wake();  // Long before its time is taken.
  const Json draw{{"op", "time"}, {"do", "draw"}, {"number", number}, {"calls", wanted.calls}};
  MC_TRY_VOID(judge_.ask(text_of(draw), nullptr, limits_.judge_s), "draw");
  if (wanted.traced) page_.trace(number);
  const Json queue{{"op", "time"},
                   {"do", "queue"},
                   {"number", number},
                   {"calls", wanted.calls},
                   {"gated", gated_}};
  const auto start = Clock::now();
  session_.send(text_of(queue), nullptr, Seconds(limits_.forward_s));
  MC_TRY(auto queued, receive_queued(number, burst), "queue");
  const std::chrono::duration<double, std::micro> queueing = Clock::now() - start;
  if (auto* outcome = std::get_if<task::Outcome>(&queued)) return Timed(std::move(*outcome));
  const auto first = decode_burst(std::get<Reply>(queued).json);
  if (!first) return garbled(first.error());

  const Json reveal{{"op", "time"}, {"do", "reveal"}, {"arm", name_}, {"calls", wanted.calls}};
  MC_TRY_VOID(judge_.ask(text_of(reveal), nullptr, limits_.judge_s), "reveal");
  session_.send(R"({"op": "time", "do": "finish"})", nullptr, Seconds(limits_.forward_s));
  time_bracket(number, burst);
  burst.launches = page_.launches();
  burst.launches_own = page_.launches_own();
  // Before the process is heard again: it must not gain time by what it answers.
  const auto calls = static_cast<size_t>(wanted.calls);
  const bool tells_all = !gated_ || first->places.size() == calls;
  if (gated_ && tells_all) MC_TRY_VOID(look(*first, wanted.looks, burst), "look");
  MC_TRY(auto finished, outcome_of(session_.receive(Seconds(limits_.forward_s))), "finish");
  if (auto* outcome = std::get_if<task::Outcome>(&finished)) return Timed(std::move(*outcome));
  auto last = decode_burst(std::get<Reply>(finished).json);
  if (!last) return garbled(last.error());
  if (!tells_all || (!gated_ && last->places.size() != calls)) {
    return garbled({ErrorCode::kProtocol, "a burst does not tell the outputs of each call"});
  }
  if (!gated_) MC_TRY_VOID(look(*last, wanted.looks, burst), "look");

  burst.events_us = last->events_us;
  burst.busy_us = last->busy_us;
  burst.kernels = std::move(last->kernels);
  burst.queue_us = gated_ ? queueing.count() : 0;
  if (!burst.is_valid) gated_ = false;
  return Timed(std::move(burst));
}

Stage<BurstTime> TimedArm::garbled(const Error& error) const {
  return std::variant<BurstTime, task::Outcome>(
      Failure{limits_, "forward", 0, {}}(Garbled{error.message}));
}

// The answer to "queue".  A gated burst that does not come to its end is let go.
Stage<Reply> TimedArm::receive_queued(uint32_t number, BurstTime& burst) {
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(Seconds(limits_.queue_s));
  burst.is_valid = !gated_ || session_.has_news(limit);
  if (!burst.is_valid) page_.open_gate(number);
  return outcome_of(session_.receive(Seconds(limits_.forward_s)));
}

// Has the judge copy outputs: the last call's, which work that is put off would reach last, and
// some that nobody could foresee.
Status TimedArm::look(const BurstTime& answer, int looks, BurstTime& burst) {
  const auto calls = static_cast<int64_t>(answer.places.size());
  Json picks = Json::array();
  for (int i = 0; i < looks && calls > 0; ++i) {
    std::uniform_int_distribution<int64_t> any(0, calls - 1);
    const int64_t call = i == 0 ? calls - 1 : any(random_);
    const std::string& place = answer.places[static_cast<size_t>(call)];
    picks.push_back({{"call", call}, {"place", Json::parse(place)}});
  }
  const Json question{{"op", "time"},
                      {"do", "look"},
                      {"arm", name_},
                      {"forms", Json::parse(answer.forms)},
                      {"picks", picks}};
  MC_TRY_VOID(judge_.ask(text_of(question), nullptr, limits_.judge_s), "look");
  if (looks > 0) burst.looked_us = microseconds_since(opened_);
  return ok();
}

Result<std::string> TimedArm::verify() {
  const Json question{{"op", "time"}, {"do", "verify"}, {"arm", name_}};
  MC_TRY(const Reply reply, judge_.ask(text_of(question), nullptr, limits_.judge_s), "verify");
  const Json answer = Json::parse(reply.json);
  return answer.at("passed").get<bool>() ? std::string() : answer.at("problem").get<std::string>();
}

// Opens the gate once the process waits for nothing else; from there to the end.
void TimedArm::time_bracket(uint32_t number, BurstTime& burst) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(limits_.forward_s));
  const auto await = [&](auto reached) {
    for (int spins = 1; !reached(); ++spins) {
      if (spins % kSpinsPerLook != 0) continue;
      if (session_.has_news(std::chrono::milliseconds(0)) || Clock::now() > deadline) return;
    }
  };
  await([&] { return page_.ready() >= number; });
  opened_ = Clock::now();
  page_.open_gate(number);
  await([&] { return page_.done() >= number; });
  burst.bracket_us = microseconds_since(opened_);
}

}  // namespace mc::timing
