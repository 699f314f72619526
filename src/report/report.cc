// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "task/provenance.h"
#include "task/speedup.h"
#include "task/text.h"
#include "task/verdict_json.h"

namespace mc::report {
namespace {

using task::location_name;
using task::plain_line;

// ---- Phrases ------------------------------------------------------------------------------------

std::string joined(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + ": " + b;
}

std::string and_more(size_t num) { return num > 1 ? fmt::format(" (+{} more)", num - 1) : ""; }

std::string rule_phrase(const std::vector<task::RuleFinding>& findings) {
  if (findings.empty()) return "";
  const task::RuleFinding& first = findings.front();
  const std::string rule = first.rule + and_more(findings.size());
  return joined(rule, joined(location_name(first.location), first.message));
}

std::string finding_phrase(const std::vector<task::KernelFinding>& findings) {
  if (findings.empty()) return "";
  const task::KernelFinding& first = findings.front();
  const std::string place = location_name(first.location);
  std::string what = first.kind;  // The location comes second, so that a narrow table shows it.
  if (!place.empty()) what += " at " + place;
  if (!first.kernel.empty()) what += " in " + first.kernel;
  return joined(what + and_more(findings.size()), first.detail);
}

std::string check_phrase(const task::OutputCheck& check) {
  const std::string what = check.problem.empty() ? check.path : check.path + ' ' + check.problem;
  return joined(what, check.detail);
}

// A finding explains wrong values, so it comes first.
std::string trial_phrase(const task::Trial& trial) {
  if (!trial.findings.empty()) return finding_phrase(trial.findings);
  if (!trial.checks.empty()) return check_phrase(trial.checks.front());
  if (!trial.inputs_mutated.empty()) return "overwrites its input " + trial.inputs_mutated;
  return "";
}

std::string speedup_phrase(const task::Estimate& speedup, std::string_view baseline) {
  return fmt::format("{:.2f}x {} [{:.2f}, {:.2f}]", speedup.median, baseline, speedup.low,
                     speedup.high);
}

struct Phraser {
  std::string operator()(const task::Unextractable& x) const {
    return joined(x.reason, joined(location_name(x.location), x.detail));
  }
  std::string operator()(const task::Illegal& x) const { return rule_phrase(x.findings); }
  std::string operator()(const task::CompileFailed& x) const {
    if (x.diagnostics.empty()) return "the compiler failed";
    const auto is_error = [](const task::Diagnostic& d) { return d.severity == "error"; };
    const auto found = std::find_if(x.diagnostics.begin(), x.diagnostics.end(), is_error);
    const task::Diagnostic& shown = found == x.diagnostics.end() ? x.diagnostics.front() : *found;
    return joined(location_name(shown.location), shown.message);
  }
  std::string operator()(const task::Crashed& x) const {
    if (!x.findings.empty()) return x.stage + ": " + finding_phrase(x.findings);
    if (x.exception) {
      const std::string what = joined(x.exception->type, x.exception->message);
      return x.stage + ": " + joined(location_name(x.exception->location), what);
    }
    if (x.signal != 0) return x.stage + ": " + task::signal_name(x.signal);
    return fmt::format("{}: ended by itself with exit code {}", x.stage, x.exit_code);
  }
  std::string operator()(const task::TimedOut& x) const {
    const std::string what = x.stage == "all_calls" ? "all of its calls" : x.stage;
    return joined(fmt::format("{} took more than {:.3g} s", what, x.limit_s),
                  finding_phrase(x.findings));
  }
  std::string operator()(const task::OutOfMemory& x) const {
    constexpr double kMiB = 1 << 20;
    return fmt::format("{} needs more than {:.0f} MiB", x.stage,
                       static_cast<double>(x.limit_bytes) / kMiB);
  }
  std::string operator()(const task::Wrong& x) const {
    const auto failed = [](const task::Trial& trial) { return !trial.passed; };
    const auto has_finding = [](const task::Trial& t) { return !t.passed && !t.findings.empty(); };
    const auto first = std::find_if(x.trials.begin(), x.trials.end(), failed);
    const auto num = std::count_if(x.trials.begin(), x.trials.end(), failed);
    if (first == x.trials.end()) return "";
    const auto found = std::find_if(x.trials.begin(), x.trials.end(), has_finding);
    const std::string why = trial_phrase(found == x.trials.end() ? *first : *found);
    return fmt::format("{}{}{} of {} trials fail, first {}/{}", why, why.empty() ? "" : "; ", num,
                       x.trials.size(), first->shape, first->distribution);
  }
  std::string operator()(const task::Passed& x) const {
    const std::string times = x.performance ? time_phrase(*x.performance) : "";
    if (!(x.generality < 1)) return times;
    return fmt::format("{}{}generality {:.2f}", times, times.empty() ? "" : ", ", x.generality);
  }
  std::string operator()(const task::Unsupported& x) const { return rule_phrase(x.constructs); }
  std::string operator()(const task::Infra& x) const { return x.message; }

  static std::string time_phrase(const task::Performance& performance) {
    const auto phrase_of = [](const task::Estimate& speedup, const char* baseline) {
      return speedup_phrase(speedup, baseline) + (task::is_uncertain(speedup) ? " uncertain" : "");
    };
    std::string eager = fmt::format("{:.1f} us, {}", performance.time_us.median,
                                    phrase_of(performance.speedup_eager, "eager"));
    if (!performance.speedup_compile) return eager;
    return eager + ", " + phrase_of(*performance.speedup_compile, "torch.compile");
  }
};

// ---- Table --------------------------------------------------------------------------------------

constexpr size_t kNumColumns = 7;
constexpr double kWaitShown_s = 1;
using Cells = std::array<std::string, kNumColumns>;

size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// The end of a long name is more informative than its beginning.
std::string name_cell(const std::string& name) {
  constexpr size_t kNameWidthMax = 36;
  std::string text = plain_line(name, std::max(name.size(), size_t{3}));
  if (width_of(text) <= kNameWidthMax) return text;
  while (width_of(text) > kNameWidthMax - 3 || (text.front() & 0xC0) == 0x80) text.erase(0, 1);
  return "..." + text;
}

std::string number_cell(std::optional<double> number) {
  return number ? fmt::format("{:.2f}", *number) : "-";
}

// The cells of all columns but the last, which gets the remaining width.
Cells cells_of(const Judged& one) {
  return {name_cell(one.verdict.task),
          name_cell(one.verdict.candidate),
          task::outcome_name(one.verdict.outcome),
          number_cell(share_passed(one.verdict.outcome)),
          number_cell(one.reward),
          fmt::format("{:.1f}", one.seconds),
          ""};
}

using Widths = std::array<size_t, kNumColumns>;

constexpr size_t kOutcomeColumn = 2;

// The ECMA-48 escape sequence for the colour of an outcome.
const char* colour_of(std::string_view outcome) {
  if (outcome == "pass") return "\x1b[32m";
  if (outcome == "unsupported" || outcome == "infra") return "\x1b[33m";
  return "\x1b[31m";
}

std::string line_of(const Cells& cells, const Widths& widths, Colour colour = Colour::kNone) {
  std::string line;
  for (size_t i = 0; i < kNumColumns; ++i) {
    const bool is_number = i >= 3 && i <= 5;
    const std::string padding(widths[i] - std::min(widths[i], width_of(cells[i])), ' ');
    if (i == kOutcomeColumn && colour == Colour::kOutcomes) {
      line += colour_of(cells[i]) + cells[i] + "\x1b[0m" + padding;
    } else {
      line += is_number ? padding + cells[i] : cells[i] + padding;
    }
    line += "  ";
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

// ---- Metrics ------------------------------------------------------------------------------------

bool is_scored(const task::Verdict& verdict) {
  return !std::holds_alternative<task::Unsupported>(verdict.outcome) &&
         !std::holds_alternative<task::Infra>(verdict.outcome) &&
         !task::is_earned_by_any_constant(verdict);
}

struct Count {
  int64_t num = 0;
  int64_t num_passed = 0;
};

std::string trivial_line(std::span<const Judged> judged) {
  std::set<std::string> tasks;
  for (const Judged& one : judged) {
    if (task::is_earned_by_any_constant(one.verdict)) tasks.insert(one.verdict.task);
  }
  if (tasks.empty()) return "";
  return plain_line(fmt::format("no reward on trivial tasks: {} (why: musacoder task check)",
                                fmt::join(tasks, ", ")),
                    1000) +
         '\n';
}

std::string dialect_line(std::span<const Judged> judged) {
  std::set<std::string> notes;
  for (const Judged& one : judged) notes.insert(task::dialect_note(one.verdict));
  notes.erase("");
  return notes.empty() ? "" : plain_line(fmt::format("{}", fmt::join(notes, "; ")), 1000) + '\n';
}

std::string protections_line(std::span<const Judged> judged) {
  std::set<std::string> off;
  for (const Judged& one : judged) {
    const std::vector<std::string>& names = one.verdict.telemetry.protections_off;
    off.insert(names.begin(), names.end());
  }
  if (off.empty()) return "";
  return plain_line(fmt::format("sandbox without {} (why: musacoder doctor)", fmt::join(off, ", ")),
                    1000) +
         '\n';
}

// The line about candidates for which the strict tier found nothing, with its checks.
std::string clean_line(std::span<const Judged> judged) {
  int64_t num = 0;
  int64_t num_clean = 0;
  std::set<std::string> names;
  for (const Judged& one : judged) {
    const std::vector<task::Audit>& audits = one.verdict.telemetry.audits;
    if (audits.empty()) continue;
    ++num;
    const auto is_clean = [](const task::Audit& audit) { return audit.result == "clean"; };
    if (!std::all_of(audits.begin(), audits.end(), is_clean)) continue;
    ++num_clean;
    for (const task::Audit& audit : audits) names.insert(audit.check);
  }
  if (num_clean == 0) return "";
  return fmt::format("strict: {} of {} clean ({})\n", num_clean, num, fmt::join(names, ", "));
}

// The line about requested checks that did not run.
std::string audits_line(std::span<const Judged> judged) {
  // The keys are the reasons why the checks did not run.
  std::map<std::string, std::set<std::string>> checks;
  for (const Judged& one : judged) {
    for (const task::Audit& audit : one.verdict.telemetry.audits) {
      if (audit.result == "not_run") checks[audit.detail].insert(audit.check);
    }
    const task::RaceCheck& races = one.verdict.telemetry.race_check;
    if (races.state == "not_run") checks[races.reason].insert("race_check");
  }
  std::string lines;
  for (const auto& [why, names] : checks) {
    lines += plain_line(fmt::format("not audited by {}: {}", fmt::join(names, ", "), why), 1000);
    lines += '\n';
  }
  return lines;
}

using Estimates = std::vector<task::Estimate>;

// The geometric means of the medians, of the lower ends and of the upper ends.
task::Estimate geometric_mean(const Estimates& estimates) {
  MC_CHECK(!estimates.empty());
  task::Estimate sum;
  for (const task::Estimate& estimate : estimates) {
    sum.median += std::log(estimate.median);
    sum.low += std::log(estimate.low);
    sum.high += std::log(estimate.high);
  }
  const auto num = static_cast<double>(estimates.size());
  return {std::exp(sum.median / num), std::exp(sum.low / num), std::exp(sum.high / num)};
}

void add_if_usable(Estimates& estimates, const task::Estimate& estimate) {
  const auto has_logarithm = [](double x) { return std::isfinite(x) && x > 0; };
  if (has_logarithm(estimate.median) && has_logarithm(estimate.low) &&
      has_logarithm(estimate.high)) {
    estimates.push_back(estimate);
  }
}

std::string speedups_line(std::span<const Judged> judged) {
  Estimates eager;
  Estimates compile;
  for (const Judged& one : judged) {
    const auto* passed = std::get_if<task::Passed>(&one.verdict.outcome);
    if (passed == nullptr || !passed->performance) continue;
    add_if_usable(eager, passed->performance->speedup_eager);
    if (const auto& speedup = passed->performance->speedup_compile)
      add_if_usable(compile, *speedup);
  }
  if (eager.empty()) return "";
  std::string out = fmt::format("{} timed: in the geometric mean {}", eager.size(),
                                speedup_phrase(geometric_mean(eager), "eager"));
  if (!compile.empty()) {
    out += fmt::format("; {} of them {}", compile.size(),
                       speedup_phrase(geometric_mean(compile), "torch.compile"));
  }
  return out + '\n';
}

// A kind of wait, the stages that it includes, and its remedy.
struct Wait {
  const char* what;
  std::vector<std::string_view> stages;
  const char* remedy;
};

const std::vector<Wait>& kinds_of_wait() {
  static const std::vector<Wait> kinds = {
      {"for the device's memory", {"wait.memory"}, "fewer --jobs"},
      {"for a turn on the device", {"wait.turn", "time.wait"}, "another device, or --timing none"},
      {"to have the device alone", {"time.wait_alone"}, "another device, or --timing quick"},
      {"for a judge", {"wait.judge"}, "more candidates of the same task in a row"},
      {"for the race check", {"wait.race_check"}, "fewer --jobs, or --race-check off"},
  };
  return kinds;
}

// The line about the seconds that candidates waited in total, and the remedy for the longest wait.
std::string waits_line(std::span<const Judged> judged) {
  std::vector<std::string> parts;
  double longest_s = 0;
  const char* remedy = "";
  for (const auto& [what, stages, against] : kinds_of_wait()) {
    double sum_s = 0;
    for (const Judged& one : judged) {
      for (const task::StageTime& stage : one.verdict.telemetry.stages) {
        if (std::ranges::find(stages, stage.stage) != stages.end()) sum_s += stage.ms / 1000;
      }
    }
    if (sum_s < kWaitShown_s) continue;
    parts.push_back(fmt::format("{:.0f} s {}", sum_s, what));
    if (sum_s > longest_s) remedy = against;
    longest_s = std::max(longest_s, sum_s);
  }
  if (parts.empty()) return "";
  return fmt::format("candidates waited {}; against the longest wait: {}\n", fmt::join(parts, ", "),
                     remedy);
}

std::map<std::string, Count> counts_by_task(std::span<const Judged> judged) {
  std::map<std::string, Count> out;
  for (const Judged& one : judged) {
    if (!is_scored(one.verdict)) continue;
    Count& count = out[one.verdict.task];
    ++count.num;
    if (std::holds_alternative<task::Passed>(one.verdict.outcome)) ++count.num_passed;
  }
  return out;
}

}  // namespace

std::string phrase(const task::Verdict& verdict, size_t bytes_max) {
  std::string phrase = std::visit(Phraser{}, verdict.outcome);
  if (std::holds_alternative<task::Passed>(verdict.outcome) && !verdict.not_tried.empty()) {
    phrase += fmt::format("{}not tried: {}", phrase.empty() ? "" : "; ",
                          fmt::join(verdict.not_tried, "; "));
  }
  if (!task::is_earned_by_any_constant(verdict)) return plain_line(phrase, bytes_max);
  const std::string why =
      fmt::format("trivial task, no reward ({})", fmt::join(verdict.task_grade.reasons, "; "));
  return plain_line(phrase.empty() ? why : why + "; " + phrase, bytes_max);
}

std::optional<double> share_passed(const task::Outcome& outcome) {
  if (std::holds_alternative<task::Passed>(outcome)) return 1;
  if (const auto* wrong = std::get_if<task::Wrong>(&outcome)) return wrong->q;
  return std::nullopt;
}

std::string table(std::span<const Judged> judged, const TableOptions& options) {
  constexpr size_t kPhraseWidthMin = 40;  // A finding's kind and place.
  const Cells header = {"task", "candidate", "outcome", "q", "reward", "seconds", "where and why"};
  std::vector<Cells> rows = {header};
  for (const Judged& one : judged) rows.push_back(cells_of(one));
  Widths widths{};
  size_t width_before_phrase = 0;
  for (size_t i = 0; i + 1 < kNumColumns; ++i) {
    for (const Cells& cells : rows) widths[i] = std::max(widths[i], width_of(cells[i]));
    width_before_phrase += widths[i] + 2;
  }
  const size_t room = options.columns_max - std::min(options.columns_max, width_before_phrase);
  std::string out = line_of(header, widths);
  for (size_t i = 0; i < judged.size(); ++i) {
    rows[i + 1].back() = phrase(judged[i].verdict, std::max(room, kPhraseWidthMin));
    out += line_of(rows[i + 1], widths, options.colour);
  }
  return out;
}

std::string summary(std::span<const Judged> judged) {
  std::vector<std::string> parts;
  for (const std::string& name : task::outcome_names()) {
    const auto num = std::count_if(judged.begin(), judged.end(), [&](const Judged& one) {
      return task::outcome_name(one.verdict.outcome) == name;
    });
    if (num > 0) parts.push_back(fmt::format("{} {}", num, name));
  }
  double sum = 0;
  int64_t num_rewards = 0;
  for (const Judged& one : judged) {
    if (!one.reward) continue;
    sum += *one.reward;
    ++num_rewards;
  }
  std::string out = fmt::format("{} candidate{}: {}", judged.size(), judged.size() == 1 ? "" : "s",
                                fmt::join(parts, ", "));
  const Metrics all = metrics(judged);
  if (all.num_scored > 0) {
    out += fmt::format(
        "; correct {:.1f} % of {} scored",
        100.0 * static_cast<double>(all.num_correct) / static_cast<double>(all.num_scored),
        all.num_scored);
  }
  if (num_rewards > 0) {
    out += fmt::format("; mean reward {:.2f}", sum / static_cast<double>(num_rewards));
  }
  return out + '\n' + dialect_line(judged) + speedups_line(judged) + waits_line(judged) +
         trivial_line(judged) + protections_line(judged) + clean_line(judged) + audits_line(judged);
}

std::string json_line(const Judged& judged) {
  const std::string verdict = task::to_json(judged.verdict, task::Indent::kCompact);
  const nlohmann::json reward = judged.reward ? nlohmann::json(*judged.reward) : nlohmann::json();
  const std::string feedback = nlohmann::json(judged.feedback)
                                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return fmt::format(
      "{{\"reward\":{},\"seconds\":{:.6f},\"feedback\":{},\"verdict\":{},\"provenance\":{}}}\n",
      reward.dump(), judged.seconds, feedback, verdict, task::provenance_json());
}

double pass_at_k(int64_t num, int64_t num_passed, int64_t k) {
  MC_CHECK(0 <= num_passed && num_passed <= num && 1 <= k && k <= num);
  // 1 - C(num - num_passed, k) / C(num, k), as a product that cannot overflow.
  double none = 1;
  for (int64_t i = num - num_passed + 1; i <= num; ++i) {
    none *= std::max(0.0, 1 - static_cast<double>(k) / static_cast<double>(i));
  }
  return 1 - none;
}

Metrics metrics(std::span<const Judged> judged) {
  Metrics out;
  double sum = 0;
  for (const auto& [task, count] : counts_by_task(judged)) {
    ++out.num_tasks;
    out.num_scored += count.num;
    out.num_correct += count.num_passed;
    sum += static_cast<double>(count.num_passed) / static_cast<double>(count.num);
  }
  if (out.num_tasks > 0) out.average = sum / static_cast<double>(out.num_tasks);
  return out;
}

}  // namespace mc::report
