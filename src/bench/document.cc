// SPDX-License-Identifier: Apache-2.0
#include "bench/document.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/bench_json.h"
#include "report/report.h"
#include "task/speedup.h"
#include "task/verdict_json.h"

namespace mc::bench {
namespace {

using Json = nlohmann::ordered_json;
using store::Answer;
using store::AnswerKey;
using store::Judgement;
using store::TaskRecord;

constexpr size_t kPhraseBytesMax = 300;

// The stages of MooreEval in order.
constexpr std::array<const char*, 5> kStages = {"extraction", "static legality", "compile",
                                                "correctness", "runtime legality"};

// The index of the stage at which the verdict was reached; the number of stages for a pass.
size_t stage_of(const task::Outcome& outcome) {
  if (std::holds_alternative<task::Unextractable>(outcome)) return 0;
  if (const auto* illegal = std::get_if<task::Illegal>(&outcome)) {
    return illegal->when == "static" ? 1 : illegal->when == "link" ? 2 : 4;
  }
  if (std::holds_alternative<task::CompileFailed>(outcome)) return 2;
  if (std::holds_alternative<task::Passed>(outcome)) return kStages.size();
  return 3;
}

bool is_scored(const task::Outcome& outcome) {
  return !std::holds_alternative<task::Unsupported>(outcome) &&
         !std::holds_alternative<task::Infra>(outcome);
}

const task::Performance* performance_of(const task::Verdict& verdict) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  return passed != nullptr && passed->performance ? &*passed->performance : nullptr;
}

Json json_of(const std::optional<task::Estimate>& estimate) {
  if (!estimate) return nullptr;
  return {{"value", estimate->median},
          {"low", estimate->low},
          {"high", estimate->high},
          {"uncertain", task::is_uncertain(*estimate)}};
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json parsed(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json(text) : json;
}

// The text as a JSON object; other text becomes {"text": text}.
Json object_of(const std::string& text) {
  const Json json = parsed(text);
  return json.is_object() ? json : Json{{"text", text}};
}

// ---- A run --------------------------------------------------------------------------------------

Json funnel_of(const RunData& data) {
  std::array<int64_t, kStages.size() + 1> ended{};
  for (const Judgement& one : data.judgements) {
    if (is_scored(one.verdict.outcome)) ++ended[stage_of(one.verdict.outcome)];
  }
  int64_t reached = 0;
  for (const int64_t num : ended) reached += num;
  Json funnel = Json::array();
  for (size_t i = 0; i < kStages.size(); ++i) {
    funnel.push_back({{"stage", kStages[i]}, {"reached", reached}, {"failed", ended[i]}});
    reached -= ended[i];
  }
  return funnel;
}

Json turns_of(const RunData& data) {
  // For each turn, the numbers of answers and of passes.
  std::map<int64_t, std::pair<int64_t, int64_t>> turns;
  for (const Judgement& one : data.judgements) {
    auto& [answers, passed] = turns[one.key.turn];
    ++answers;
    passed += std::holds_alternative<task::Passed>(one.verdict.outcome) ? 1 : 0;
  }
  Json out = Json::array();
  for (const auto& [turn, counts] : turns) {
    out.push_back({{"turn", turn}, {"answers", counts.first}, {"passed", counts.second}});
  }
  return out;
}

// The curve of fast_p at each speed-up that occurs; empty if a pass was not timed.
Json fast_curve_of(const std::vector<report::Attempt>& attempts) {
  using Outcome = report::Attempt::Outcome;
  // The best speed-up of each sample; the keys are task and sample, and 0 means no pass.
  std::map<std::string, std::map<int64_t, double>> best;
  for (const report::Attempt& one : attempts) {
    if (one.outcome == Outcome::kUnsupported || one.outcome == Outcome::kInfra) continue;
    double& mine = best[one.task][one.sample];
    if (one.outcome != Outcome::kPassed) continue;
    if (!one.speedup) return Json::array();
    mine = std::max(mine, one.speedup->median);
  }
  std::map<double, double> weights = {{0, 0}};  // The share of all samples at each speed-up.
  for (const auto& [task, samples] : best) {
    for (const auto& [sample, speedup] : samples) {
      weights[speedup] += 1 / static_cast<double>(samples.size() * best.size());
    }
  }
  // The sum begins with the fastest, so that the last point is exactly 0.
  std::vector<std::pair<double, double>> curve;
  double faster = 0;
  for (auto entry = weights.rbegin(); entry != weights.rend(); ++entry) {
    curve.emplace_back(entry->first, faster);
    faster += entry->second;
  }
  if (best.empty()) return Json::array();
  return Json(std::vector(curve.rbegin(), curve.rend()));
}

Json sample_of(const Judgement& one, const Answer* answer, const TaskRecord* task,
               bool is_pending) {
  const task::Verdict& verdict = one.verdict;
  const size_t stage = stage_of(verdict.outcome);
  const task::Performance* timed = performance_of(verdict);
  Json out = {{"task", one.key.id},
              {"sample", one.key.sample},
              {"turn", one.key.turn},
              {"level", task != nullptr ? task->level : ""},
              {"families", task != nullptr ? task->families : std::vector<std::string>()},
              {"outcome", task::outcome_name(verdict.outcome)},
              {"pending", is_pending},
              {"q", or_null(report::share_passed(verdict.outcome))},
              {"stage", stage < kStages.size() ? kStages[stage] : "pass"},
              {"phrase", report::phrase(verdict, kPhraseBytesMax)},
              {"reward", or_null(one.reward)},
              {"seconds", one.seconds}};
  out["speedup"] = timed != nullptr ? json_of(timed->speedup_eager) : Json();
  out["speedup_compile"] = timed != nullptr ? json_of(timed->speedup_compile) : Json();
  out["time_us"] = timed != nullptr ? Json(timed->time_us.median) : Json();
  out["sol_score"] = or_null(sol_score(verdict));
  out["tokens"] = answer != nullptr ? answer->num_tokens : 0;
  out["finish"] = answer != nullptr ? answer->finish : "";
  out["answer"] = answer != nullptr ? answer->completion : "";
  out["reasoning"] = answer != nullptr ? answer->reasoning : "";
  out["feedback"] = one.feedback;
  out["verdict"] = parsed(task::to_json(verdict, task::Indent::kCompact));
  return out;
}

Json samples_of(const RunData& data) {
  std::map<AnswerKey, const Answer*> answers;
  for (const Answer& answer : data.answers) answers[answer.key] = &answer;
  std::map<std::string, const TaskRecord*> tasks;
  for (const TaskRecord& task : data.tasks) tasks[task.id] = &task;
  const auto pending = pending_of(data);
  Json out = Json::array();
  for (const Judgement& one : data.judgements) {
    const auto answer = answers.find(one.key);
    const auto task = tasks.find(one.key.id);
    out.push_back(sample_of(one, answer == answers.end() ? nullptr : answer->second,
                            task == tasks.end() ? nullptr : task->second,
                            pending.contains({one.key.id, one.key.sample})));
  }
  return out;
}

Json tokens_of(const RunData& data) {
  int64_t prompt = 0;
  int64_t completion = 0;
  int64_t reasoning = 0;
  for (const Answer& answer : data.answers) {
    prompt += answer.prompt_tokens;
    completion += answer.num_tokens;
    reasoning += answer.reasoning_tokens;
  }
  return {{"prompt", prompt}, {"completion", completion}, {"reasoning", reasoning}};
}

// The cost in dollars, from prices for a million tokens; null without prices.
Json cost_of(const Json& tokens, const Json& prices) {
  const auto is_number = [](const Json& price) { return price.is_number(); };
  if (!prices.is_array() || prices.size() != 2 || !std::ranges::all_of(prices, is_number)) {
    return nullptr;
  }
  return (tokens["prompt"].get<double>() * prices[0].get<double>() +
          tokens["completion"].get<double>() * prices[1].get<double>()) /
         1e6;
}

Json run_of(const RunData& data, Missing missing) {
  const Json settings = object_of(data.record.settings);
  std::map<std::string, int64_t> outcomes;
  for (const Judgement& one : data.judgements) ++outcomes[task::outcome_name(one.verdict.outcome)];
  Json groups = Json::object();
  for (const report::BenchRow& row : rows_of(data, missing)) {
    groups[row.name] = parsed(report::figures_json(row.figures));
  }
  const Json tokens = tokens_of(data);
  const Coverage coverage = coverage_of(data);
  return {{"name", data.record.name},
          {"created", data.record.created},
          {"settings", settings},
          {"environment", object_of(data.record.environment)},
          {"groups", groups},
          {"fast_curve", fast_curve_of(attempts_of(data, missing))},
          {"wanted", coverage.num_wanted},
          {"judged", coverage.num_judged},
          {"missing", coverage.num_missing},
          {"unfinished", coverage_text(coverage, missing)},
          {"cut", std::ranges::count(data.answers, "length", &Answer::finish)},
          {"tokens", tokens},
          {"cost", cost_of(tokens, parsed(data.prices))},
          {"outcomes", outcomes},
          {"funnel", funnel_of(data)},
          {"turns", turns_of(data)},
          {"samples", samples_of(data)}};
}

// ---- All runs -----------------------------------------------------------------------------------

std::map<std::string, double> bounds_of(std::span<const RunData> runs) {
  std::map<std::string, double> bounds;
  for (const RunData& data : runs) {
    for (const Judgement& one : data.judgements) {
      const task::Performance* timed = performance_of(one.verdict);
      if (timed != nullptr) bounds[one.key.id] = timed->floor.time_us;
    }
  }
  return bounds;
}

Json tasks_of(std::span<const RunData> runs) {
  const std::map<std::string, double> bounds = bounds_of(runs);
  std::map<std::string, const TaskRecord*> tasks;
  for (const RunData& data : runs) {
    for (const TaskRecord& task : data.tasks) tasks.try_emplace(task.id, &task);
  }
  Json out = Json::array();
  for (const auto& [id, task] : tasks) {
    const auto bound = bounds.find(id);
    out.push_back({{"id", id},
                   {"level", task->level},
                   {"families", task->families},
                   {"code", task->code},
                   {"sol_us", bound == bounds.end() ? Json() : Json(bound->second)}});
  }
  return out;
}

Json paired_of(std::span<const RunData> runs, Missing missing) {
  Json out = Json::array();
  for (size_t a = 0; a < runs.size(); ++a) {
    for (size_t b = a + 1; b < runs.size(); ++b) {
      const auto paired =
          report::paired_difference(attempts_of(runs[a], missing), attempts_of(runs[b], missing));
      if (!paired) continue;
      out.push_back({{"a", a},
                     {"b", b},
                     {"tasks", paired->num_tasks},
                     {"better", paired->num_better},
                     {"worse", paired->num_worse},
                     {"a_value", paired->a},
                     {"b_value", paired->b},
                     {"difference", paired->difference},
                     {"low", paired->interval.low},
                     {"high", paired->interval.high}});
    }
  }
  return out;
}

// ---- KernelBench --------------------------------------------------------------------------------

struct Numbered {
  std::string level;
  std::string number;
};

// The level and the number in "kernelbench:1/19"; empty for other ids.
std::optional<Numbered> numbered(const std::string& id) {
  const size_t colon = id.rfind(':');
  const size_t slash = id.rfind('/');
  if (colon == std::string::npos || slash == std::string::npos || slash < colon) return {};
  Numbered out{id.substr(colon + 1, slash - colon - 1), id.substr(slash + 1)};
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  return is_number(out.level) && is_number(out.number) ? std::optional(out) : std::nullopt;
}

Json kernelbench_entry(const Judgement& one) {
  constexpr double kUsPerMs = 1000;
  const task::Outcome& outcome = one.verdict.outcome;
  const bool is_compiled = !std::holds_alternative<task::Unextractable>(outcome) &&
                           !std::holds_alternative<task::CompileFailed>(outcome);
  Json entry = {{"sample_id", one.key.sample},
                {"compiled", is_compiled},
                {"correctness", std::holds_alternative<task::Passed>(outcome)},
                {"metadata",
                 {{"outcome", task::outcome_name(outcome)},
                  {"reason", report::phrase(one.verdict, kPhraseBytesMax)}}},
                {"runtime", -1.0},
                {"runtime_stats", Json::object()}};
  if (const task::Performance* timed = performance_of(one.verdict)) {
    const task::Estimate& us = timed->time_us;
    entry["runtime"] = us.median / kUsPerMs;
    entry["runtime_stats"] = {
        {"median", us.median / kUsPerMs}, {"low", us.low / kUsPerMs}, {"high", us.high / kUsPerMs}};
  }
  return entry;
}

}  // namespace

std::map<std::string, std::string> kernelbench_results(const RunData& data) {
  std::map<std::pair<std::string, int64_t>, const Judgement*> last;
  for (const Judgement& one : data.judgements) {  // Verdicts are in the order of their turns.
    const Judgement*& mine = last[{one.key.id, one.key.sample}];
    const bool has_passed =
        mine != nullptr && std::holds_alternative<task::Passed>(mine->verdict.outcome);
    if (!has_passed) mine = &one;
  }
  std::map<std::string, Json> levels;
  for (const auto& [key, judgement] : last) {
    const std::optional<Numbered> task = numbered(key.first);
    if (!task || !is_scored(judgement->verdict.outcome)) continue;
    levels[task->level][task->number].push_back(kernelbench_entry(*judgement));
  }
  std::map<std::string, std::string> out;
  for (const auto& [level, json] : levels) {
    out[level] = json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
  }
  return out;
}

std::optional<double> sol_score(const task::Verdict& verdict) {
  const task::Performance* timed = performance_of(verdict);
  if (timed == nullptr) return std::nullopt;
  const double gap = timed->time_eager_us.median - timed->floor.time_us;
  if (gap <= 0) return std::nullopt;
  const double mine = std::max(0.0, timed->time_us.median - timed->floor.time_us);
  return 1 / (1 + mine / gap);
}

std::string document_json(std::span<const RunData> runs, const DocumentOptions& options) {
  Json list = Json::array();
  std::map<std::string, int> names;
  for (const RunData& data : runs) {
    list.push_back(run_of(data, options.missing));
    if (const int number = ++names[data.record.name]; number > 1) {
      list.back()["name"] = fmt::format("{} ({})", data.record.name, number);
    }
  }
  const Json document = {{"schema", 3},
                         {"title", options.title},
                         {"created", options.created},
                         {"program", options.program},
                         {"runs", list},
                         {"tasks", tasks_of(runs)},
                         {"paired", paired_of(runs, options.missing)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mc::bench
