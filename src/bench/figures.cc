// SPDX-License-Identifier: Apache-2.0
#include "bench/figures.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

namespace mc::bench {
namespace {

// 1, 2, 4, … and the number of samples itself.
std::vector<int64_t> ks_of(std::span<const store::Judgement> judgements) {
  int64_t samples = 1;
  for (const store::Judgement& one : judgements) samples = std::max(samples, one.key.sample + 1);
  std::vector<int64_t> out;
  for (int64_t k = 1; k < samples; k *= 2) out.push_back(k);
  out.push_back(samples);
  return out;
}

}  // namespace

Result<RunData> read_run(const store::Run& run) {
  RunData data{.record = run.record(), .tasks = {}, .answers = {}, .judgements = {}};
  MC_TRY(data.tasks, run.tasks(), "tasks");
  // In this order, so that a verdict that a writer adds meanwhile has its answer.
  MC_TRY(data.judgements, run.judgements(), "verdicts");
  MC_TRY(data.answers, run.answers(), "answers");
  return data;
}

std::vector<report::Attempt> attempts_of(std::span<const store::Judgement> judgements) {
  std::vector<report::Attempt> out;
  for (const store::Judgement& one : judgements) {
    out.push_back(report::attempt_of(one.verdict, one.key.sample, one.key.turn));
  }
  return out;
}

int64_t count_missing(const RunData& data) {
  std::map<std::string, std::set<int64_t>> answered;  // The samples, by task.
  for (const store::Answer& answer : data.answers) {
    answered[answer.key.id].insert(answer.key.sample);
  }
  const auto settings = nlohmann::json::parse(data.record.settings, nullptr, false);
  int64_t samples = 0;
  if (settings.is_object() && settings.contains("samples")) {
    const auto& number = settings["samples"];
    if (number.is_number_unsigned()) samples = number.get<int64_t>();
  }
  int64_t missing = 0;
  for (const store::TaskRecord& task : data.tasks) {
    const auto num = static_cast<int64_t>(answered[task.id].size());
    missing += std::max<int64_t>(0, std::max<int64_t>(1, samples) - num);
  }
  return missing;
}

std::vector<report::BenchRow> rows_of(const RunData& data) {
  const std::vector<report::Attempt> attempts = attempts_of(data.judgements);
  const report::BenchOptions options{.ks = ks_of(data.judgements)};
  std::map<std::string, std::set<std::string>> groups;  // The ids of tasks, by name.
  for (const store::TaskRecord& task : data.tasks) {
    if (!task.level.empty()) groups[task.level].insert(task.id);
    for (const std::string& family : task.families) groups["family " + family].insert(task.id);
  }
  std::vector<report::BenchRow> rows = {{"all", report::bench_figures(attempts, options)}};
  for (const auto& [name, ids] : groups) {
    std::vector<report::Attempt> some;
    for (const report::Attempt& one : attempts) {
      if (ids.contains(one.task)) some.push_back(one);
    }
    if (!some.empty()) rows.push_back({name, report::bench_figures(some, options)});
  }
  return rows;
}

}  // namespace mc::bench
