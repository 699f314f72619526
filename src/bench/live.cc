// SPDX-License-Identifier: Apache-2.0
#include "bench/live.h"

#include <algorithm>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/report.h"
#include "task/speedup.h"

namespace mc::bench {
namespace {

using Json = nlohmann::ordered_json;
using store::Judgement;

constexpr size_t kEventPhraseBytesMax = 300;

Json event_of(const char* kind, const std::string& run) {
  return {{"event", kind}, {"version", kEventVersion}, {"run", run}};
}

std::string line_of(const Json& event) {
  return event.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Json json_of(const std::optional<report::Figure>& figure) {
  if (!figure) return nullptr;
  return {{"value", figure->value},
          {"low", figure->interval.low},
          {"high", figure->interval.high},
          {"tasks", figure->num_tasks}};
}

Json speedup_json(const task::Verdict& verdict) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  if (passed == nullptr || !passed->performance) return nullptr;
  const task::Estimate& speedup = passed->performance->speedup_eager;
  return {{"value", speedup.median},
          {"low", speedup.low},
          {"high", speedup.high},
          {"uncertain", task::is_uncertain(speedup)}};
}

// The number of answers that wait to be judged.
int64_t waiting_of(const LiveState& state) {
  return std::max<int64_t>(0, state.loop.num_waiting - state.num_preparing - state.num_measuring);
}

// The estimated remaining time in seconds.  Verdicts of earlier commands took none of elapsed_s, so
// only work of this command gives a speed; without any the result is empty.
std::optional<double> left_of(const LiveState& state) {
  const LiveWork work = work_of(state);
  if (work.done <= 0) return std::nullopt;
  return state.elapsed_s * static_cast<double>(work.total - work.done) /
         static_cast<double>(work.done);
}

}  // namespace

void PassRate::add(const Judgement& judgement) {
  const report::Attempt attempt =
      report::attempt_of(judgement.verdict, judgement.key.sample, judgement.key.turn);
  const bool is_pass = attempt.outcome == report::Attempt::Outcome::kPassed;
  if (!is_pass && attempt.outcome != report::Attempt::Outcome::kFailed) return;
  if (!is_pass && attempt.turn + 1 < turns_) return;
  bool& passes = passes_[judgement.key.id][judgement.key.sample];
  passes = passes || is_pass;
}

std::optional<report::Figure> PassRate::figure() const {
  std::vector<double> shares;
  for (const auto& [task, samples] : passes_) {
    const auto num = std::ranges::count_if(samples, [](const auto& entry) { return entry.second; });
    shares.push_back(static_cast<double>(num) / static_cast<double>(samples.size()));
  }
  return report::figure_of(shares);
}

LiveWork work_of(const LiveState& state) {
  const int64_t done = state.loop.num_verdicts - state.num_before + state.loop.num_failed;
  return {done, done + state.loop.num_asked + state.loop.num_waiting};
}

std::string line_of(const LiveState& state) {
  std::string line;
  if (state.pass_rate) line = fmt::format("pass {}, ", report::percent(*state.pass_rate));
  const std::pair<const char*, int64_t> counts[] = {{"sampling", state.loop.num_sampling},
                                                    {"preparing", state.num_preparing},
                                                    {"measuring", state.num_measuring},
                                                    {"without an answer", state.loop.num_failed}};
  for (const auto& [name, num] : counts) {
    if (num > 0) line += fmt::format("{} {}, ", name, num);
  }
  return line + fmt::format("judged {}", state.loop.num_verdicts);
}

std::string sample_event(const std::string& run, const Judgement& judgement) {
  const task::Verdict& verdict = judgement.verdict;
  const std::optional<double> q = report::share_passed(verdict.outcome);
  Json event = event_of("sample", run);
  event["task"] = judgement.key.id;
  event["sample"] = judgement.key.sample;
  event["turn"] = judgement.key.turn;
  event["outcome"] = task::outcome_name(verdict.outcome);
  event["q"] = q ? Json(*q) : Json();
  event["reward"] = judgement.reward ? Json(*judgement.reward) : Json();
  event["seconds"] = judgement.seconds;
  event["speedup"] = speedup_json(verdict);
  event["phrase"] = report::phrase(verdict, kEventPhraseBytesMax);
  return line_of(event);
}

std::string progress_event(const std::string& run, const LiveState& state) {
  const SamplingProgress& loop = state.loop;
  const std::optional<double> left_s = left_of(state);
  Json event = event_of("progress", run);
  event["elapsed_s"] = state.elapsed_s;
  event["left_s"] = left_s ? Json(*left_s) : Json();
  event["queued"] = loop.num_asked - loop.num_sampling;
  event["sampling"] = loop.num_sampling;
  event["waiting"] = waiting_of(state);
  event["preparing"] = state.num_preparing;
  event["measuring"] = state.num_measuring;
  event["judged"] = loop.num_verdicts;
  event["failed"] = loop.num_failed;
  event["pass_rate"] = json_of(state.pass_rate);
  return line_of(event);
}

std::string end_event(const std::string& run, const std::string& members) {
  Json event = event_of("end", run);
  event.update(Json::parse(members));
  return line_of(event);
}

std::string failure_event(const std::string& run, const std::string& message) {
  Json event = event_of("end", run);
  event["error"] = message;
  return line_of(event);
}

}  // namespace mc::bench
