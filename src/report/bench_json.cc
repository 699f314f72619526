// SPDX-License-Identifier: Apache-2.0
#include "report/bench_json.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mc::report {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<Figure>& figure) {
  if (!figure) return nullptr;
  return {{"value", figure->value},
          {"low", figure->interval.low},
          {"high", figure->interval.high},
          {"tasks", figure->num_tasks}};
}

Json json_of(const BenchFigures& figures) {
  Json pass_at = Json::object();
  for (const auto& [k, figure] : figures.pass_at) pass_at[std::to_string(k)] = json_of(figure);
  Json fast = Json::object();
  for (const double p : kFastP) {
    const auto found = figures.fast.find(p);
    fast[fmt::format("{:g}", p)] =
        json_of(found == figures.fast.end() ? std::nullopt : std::optional(found->second));
  }
  Json uncertain = Json::object();
  for (const auto& [p, num] : figures.uncertain) uncertain[fmt::format("{:g}", p)] = num;
  return {{"tasks", figures.num_tasks},
          {"answers", figures.num_attempts},
          {"not_scored", figures.num_not_scored},
          {"missing", figures.num_missing},
          {"unsupported", figures.unsupported},
          {"samples", figures.num_samples},
          {"passed", figures.num_passed},
          {"pass_at", pass_at},
          {"average", json_of(figures.average)},
          {"first_turn", json_of(figures.first_turn)},
          {"best_turn", json_of(figures.best_turn)},
          {"fast", fast},
          {"faster_rate", json_of(figures.faster_rate)},
          {"faster_than_compiled", json_of(figures.faster_than_compiled)},
          {"uncertain", uncertain}};
}

Json json_of(const Paired& paired) {
  return {{"tasks", paired.num_tasks},
          {"there", paired.a},
          {"here", paired.b},
          {"difference", paired.difference},
          {"low", paired.interval.low},
          {"high", paired.interval.high},
          {"better_tasks", paired.num_better},
          {"worse_tasks", paired.num_worse}};
}

}  // namespace

std::string figures_json(const BenchFigures& figures) {
  return json_of(figures).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string bench_json(const BenchReport& report) {
  std::map<std::string, int64_t> outcomes;
  for (const Judged& one : report.judged) ++outcomes[task::outcome_name(one.verdict.outcome)];
  Json groups = Json::object();
  for (const BenchRow& row : report.rows) groups[row.name] = json_of(row.figures);
  const Json json = {{"wanted", report.num_wanted},
                     {"judged", report.num_judged},
                     {"missing", report.num_missing},
                     {"cut", report.num_cut},
                     {"outcomes", outcomes},
                     {"groups", groups},
                     {"paired", report.paired ? json_of(*report.paired) : Json(nullptr)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace mc::report
