// SPDX-License-Identifier: Apache-2.0
#include "bench/figures.h"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace mc::bench {
namespace {

using SampleKey = std::pair<std::string, int64_t>;

// The prices in the settings, where an older program stored them.
std::string prices_in(const std::string& settings) {
  const auto json = nlohmann::json::parse(settings, nullptr, false);
  return json.is_object() && json.contains("prices") ? json["prices"].dump() : "";
}

struct RunSettings {
  int64_t samples = 0;  // The number of samples for each task; 0 for stored answers.
  int64_t turns = 1;
};

RunSettings settings_of(const RunData& data) {
  const auto json = nlohmann::json::parse(data.record.settings, nullptr, false);
  const auto count = [&](const char* name, int64_t other) {
    const bool is_count =
        json.is_object() && json.contains(name) && json[name].is_number_unsigned();
    return is_count ? json[name].get<int64_t>() : other;
  };
  // A run of --also judges the answers of another run, so no turn of its own will follow.
  const bool is_also = json.is_object() && json.contains("also");
  return {count("samples", 0), is_also ? 1 : count("turns", 1)};
}

// The counts of one sample.
struct SampleState {
  int64_t num_answers = 0;
  int64_t num_judged = 0;
  bool has_passed = false;

  bool is_at_end(int64_t turns) const {
    return num_answers > 0 && num_judged >= num_answers && (has_passed || num_answers >= turns);
  }
};

// All samples that the run should have.
std::map<SampleKey, SampleState> samples_of(const RunData& data, int64_t samples) {
  std::map<SampleKey, SampleState> out;
  std::set<std::string> answered;
  for (const store::Answer& answer : data.answers) {
    ++out[{answer.key.id, answer.key.sample}].num_answers;
    answered.insert(answer.key.id);
  }
  for (const store::Judgement& one : data.judgements) {
    SampleState& sample = out[{one.key.id, one.key.sample}];
    ++sample.num_judged;
    sample.num_answers = std::max(sample.num_answers, sample.num_judged);
    sample.has_passed |= std::holds_alternative<task::Passed>(one.verdict.outcome);
    answered.insert(one.key.id);
  }
  for (const store::TaskRecord& task : data.tasks) {
    const int64_t wanted = samples > 0 ? samples : answered.contains(task.id) ? 0 : 1;
    for (int64_t i = 0; i < wanted; ++i) out.try_emplace({task.id, i});
  }
  return out;
}

// 1, 2, 4, … and the number of samples.
std::vector<int64_t> ks_of(const std::vector<report::Attempt>& attempts) {
  int64_t samples = 1;
  for (const report::Attempt& one : attempts) samples = std::max(samples, one.sample + 1);
  std::vector<int64_t> out;
  for (int64_t k = 1; k < samples; k *= 2) out.push_back(k);
  out.push_back(samples);
  return out;
}

}  // namespace

Result<RunData> read_run(const store::Run& run) {
  RunData data{.record = run.record(), .tasks = {}, .answers = {}, .judgements = {}, .prices = {}};
  MC_TRY(data.tasks, run.tasks(), "tasks");
  // Verdicts are read before answers, so that each verdict has its answer even if a writer adds
  // both in between.
  MC_TRY(data.judgements, run.judgements(), "verdicts");
  MC_TRY(data.answers, run.answers(), "answers");
  MC_TRY(const auto prices, run.text(kPricesName), "prices");
  data.prices = prices.value_or(prices_in(data.record.settings));
  return data;
}

Coverage coverage_of(const RunData& data) {
  const RunSettings settings = settings_of(data);
  Coverage out{.is_generated = settings.samples > 0};
  for (const auto& [key, sample] : samples_of(data, settings.samples)) {
    ++out.num_wanted;
    out.num_judged += sample.is_at_end(settings.turns) ? 1 : 0;
    out.num_missing += sample.num_answers == 0 ? 1 : 0;
  }
  return out;
}

std::string coverage_text(const Coverage& coverage, Missing missing) {
  const int64_t num_left = coverage.num_wanted - coverage.num_judged;
  if (num_left == 0) return "";
  const int64_t num_pending = num_left - coverage.num_missing;
  const bool is_unfinished = coverage.is_generated || num_pending > 0;
  std::vector<std::string> parts;
  if (coverage.num_missing > 0) {
    parts.push_back(fmt::format("{} without an answer", coverage.num_missing));
  }
  if (num_pending > 0) {
    parts.push_back(fmt::format("{} waiting for a verdict or a turn", num_pending));
  }
  const std::string how = missing == Missing::kFailed
                              ? "count as failed (--missing left-out: are in no figure)"
                              : "are in no figure (--missing failed: count as failed)";
  return fmt::format("{}{} of {} samples have their verdict; the others, {}, {}",
                     is_unfinished ? "unfinished: " : "", coverage.num_judged, coverage.num_wanted,
                     fmt::join(parts, " and "), how);
}

std::set<std::pair<std::string, int64_t>> pending_of(const RunData& data) {
  const RunSettings settings = settings_of(data);
  std::set<SampleKey> out;
  for (const auto& [key, sample] : samples_of(data, settings.samples)) {
    if (sample.num_answers > 0 && !sample.is_at_end(settings.turns)) out.insert(key);
  }
  return out;
}

std::vector<report::Attempt> attempts_of(const RunData& data, Missing missing) {
  const RunSettings settings = settings_of(data);
  const std::map<SampleKey, SampleState> samples = samples_of(data, settings.samples);
  std::vector<report::Attempt> out;
  for (const store::Judgement& one : data.judgements) {
    const SampleState& sample = samples.at({one.key.id, one.key.sample});
    if (missing == Missing::kLeftOut && !sample.is_at_end(settings.turns)) continue;
    out.push_back(report::attempt_of(one.verdict, one.key.sample, one.key.turn));
    out.back().task = one.key.id;
  }
  for (const auto& [key, sample] : samples) {
    if (missing == Missing::kLeftOut || sample.num_judged > 0) continue;
    out.push_back({key.first, key.second, 0, report::Attempt::Outcome::kMissing, {}});
  }
  return out;
}

std::vector<report::BenchRow> rows_of(const RunData& data, Missing missing) {
  const std::vector<report::Attempt> attempts = attempts_of(data, missing);
  const report::BenchOptions options{.ks = ks_of(attempts)};
  // For each name of a group, the ids of its tasks.
  std::map<std::string, std::set<std::string>> groups;
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
