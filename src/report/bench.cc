// SPDX-License-Identifier: Apache-2.0
#include "report/bench.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "report/report.h"
#include "task/speedup.h"

namespace mc::report {
namespace {

// ---- Samples ------------------------------------------------------------------------------------

constexpr size_t kTasksNamed = 8;

bool is_scored(const Attempt& attempt) {
  return attempt.outcome != Attempt::Outcome::kUnsupported &&
         attempt.outcome != Attempt::Outcome::kInfra;
}

struct Sample {
  bool is_scored = false;
  bool passed = false;
  std::optional<bool> first_passed;         // The result of turn 0, where it is scored.
  std::optional<task::Estimate> speedup{};  // The best of the turns that pass.
  std::optional<double> over_compile{};     // The median over torch.compile of the same turn.
};

double speedup_of(const Sample& sample) { return sample.speedup ? sample.speedup->median : 0; }

using Samples = std::vector<Sample>;  // The samples of one task.

void add_turn(Sample& sample, const Attempt& attempt) {
  if (!is_scored(attempt)) return;
  const bool passed = attempt.outcome == Attempt::Outcome::kPassed;
  sample.is_scored = true;
  sample.passed = sample.passed || passed;
  if (attempt.turn == 0) sample.first_passed = passed;
  if (passed && attempt.speedup && speedup_of(sample) <= attempt.speedup->median) {
    sample.speedup = attempt.speedup;
  }
  if (passed && attempt.over_compile) {
    sample.over_compile = std::max(sample.over_compile.value_or(0), attempt.over_compile->median);
  }
}

std::map<std::string, Samples> scored_samples(std::span<const Attempt> attempts) {
  std::map<std::pair<std::string, int64_t>, Sample> by_sample;
  for (const Attempt& attempt : attempts) {
    add_turn(by_sample[{attempt.task, attempt.sample}], attempt);
  }
  std::map<std::string, Samples> out;
  for (const auto& [key, sample] : by_sample) {
    if (sample.is_scored) out[key.first].push_back(sample);
  }
  return out;
}

int64_t count_if(const Samples& samples, const std::function<bool(const Sample&)>& holds) {
  return std::count_if(samples.begin(), samples.end(), holds);
}

double share_if(const Samples& samples, const std::function<bool(const Sample&)>& holds) {
  return static_cast<double>(count_if(samples, holds)) / static_cast<double>(samples.size());
}

bool has_passed(const Sample& sample) { return sample.passed; }

// The value of one task; tasks without a value are left out.
using TaskValue = std::function<std::optional<double>(const Samples&)>;

std::optional<Figure> mean_over_tasks(const std::map<std::string, Samples>& tasks,
                                      const TaskValue& value) {
  std::vector<double> values;
  for (const auto& [task, samples] : tasks) {
    if (const auto one = value(samples)) values.push_back(*one);
  }
  return figure_of(values);
}

std::optional<Figure> fast(const std::map<std::string, Samples>& tasks, double p) {
  return mean_over_tasks(tasks, [p](const Samples& samples) {
    return share_if(samples, [p](const Sample& sample) {
      return sample.passed && (p == 0 || speedup_of(sample) > p);
    });
  });
}

// The Faster Rate over torch.compile; empty where some pass was not timed against it, or none
// passed.
std::optional<Figure> faster_than_compiled(const std::map<std::string, Samples>& tasks) {
  int64_t num_passed = 0;
  for (const auto& [task, samples] : tasks) {
    num_passed += count_if(samples, has_passed);
    if (count_if(samples, [](const Sample& s) { return s.passed && !s.over_compile; }) > 0)
      return std::nullopt;
  }
  if (num_passed == 0) return std::nullopt;
  return mean_over_tasks(tasks, [](const Samples& samples) {
    return share_if(samples, [](const Sample& sample) {
      return sample.passed && sample.over_compile.value_or(0) > kFaster;
    });
  });
}

bool is_every_pass_timed(const std::map<std::string, Samples>& tasks) {
  return std::all_of(tasks.begin(), tasks.end(), [](const auto& task) {
    return count_if(task.second, [](const Sample& s) { return s.passed && !s.speedup; }) == 0;
  });
}

std::map<double, int64_t> uncertain_of(const std::map<std::string, Samples>& tasks) {
  std::map<double, int64_t> out = {{kFaster, 0}};
  for (const double p : kFastP) {
    if (p > 0) out[p] = 0;
  }
  for (auto& [p, num] : out) {
    for (const auto& [task, samples] : tasks) {
      num += count_if(samples, [p = p](const Sample& sample) {
        return sample.speedup && task::is_uncertain_at(*sample.speedup, p);
      });
    }
  }
  return out;
}

std::optional<double> first_turn_share(const Samples& samples) {
  const int64_t num = count_if(samples, [](const Sample& s) { return s.first_passed.has_value(); });
  if (num == 0) return std::nullopt;
  const int64_t passed =
      count_if(samples, [](const Sample& s) { return s.first_passed.value_or(false); });
  return static_cast<double>(passed) / static_cast<double>(num);
}

std::optional<double> pass_at(const Samples& samples, int64_t k) {
  const auto num = static_cast<int64_t>(samples.size());
  if (num < k) return std::nullopt;
  return pass_at_k(num, count_if(samples, has_passed), k);
}

// ---- Table --------------------------------------------------------------------------------------

using Cells = std::vector<std::string>;

std::string cell(const std::optional<Figure>& figure) { return figure ? percent(*figure) : "-"; }

// A figure of speed: fast_p at `p`.
std::string speed_cell(const std::optional<Figure>& figure, const BenchFigures& figures, double p) {
  const auto found = figures.uncertain.find(p);
  const int64_t num = found == figures.uncertain.end() ? 0 : found->second;
  return cell(figure) + (figure && num > 0 ? fmt::format(" ({} uncertain)", num) : "");
}

Cells header_of(const BenchFigures& all, bool shows_turns) {
  Cells cells = {"", "tasks", "answers", "not scored"};
  if (all.num_missing > 0) cells.emplace_back("missing");
  for (const auto& [k, figure] : all.pass_at) cells.push_back(fmt::format("Pass@{}", k));
  if (shows_turns) cells.insert(cells.end(), {"first turn", "best turn"});
  if (!all.faster_rate || all.num_passed == 0) return cells;
  for (const double p : kFastP) cells.push_back(fmt::format("fast_{:g}", p));
  cells.emplace_back("Faster Rate");
  if (all.faster_than_compiled) cells.emplace_back("over torch.compile");
  return cells;
}

Cells cells_of(const BenchRow& row, const Cells& header) {
  const BenchFigures& figures = row.figures;
  std::map<std::string, std::string> values = {
      {"", row.name},
      {"tasks", std::to_string(figures.num_tasks)},
      {"answers", std::to_string(figures.num_attempts)},
      {"not scored", std::to_string(figures.num_not_scored)},
      {"missing", std::to_string(figures.num_missing)},
      {"first turn", cell(figures.first_turn)},
      {"best turn", cell(figures.best_turn)},
      {"Faster Rate", speed_cell(figures.faster_rate, figures, kFaster)},
      {"over torch.compile", cell(figures.faster_than_compiled)}};
  for (const auto& [k, figure] : figures.pass_at) {
    values[fmt::format("Pass@{}", k)] = percent(figure);
  }
  for (const auto& [p, figure] : figures.fast)
    values[fmt::format("fast_{:g}", p)] = speed_cell(figure, figures, p);
  Cells cells;
  for (const std::string& name : header) {
    cells.push_back(values.contains(name) ? values[name] : "-");
  }
  return cells;
}

std::string lines_of(const std::vector<Cells>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Cells& cells : rows) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string out;
  for (const Cells& cells : rows) {
    std::string line = fmt::format("{:<{}}", cells.front(), widths.front());
    for (size_t i = 1; i < cells.size(); ++i) line += fmt::format("  {:>{}}", cells[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return out;
}

}  // namespace

// ---- Intervals ----------------------------------------------------------------------------------

Interval wilson(int64_t num_passed, int64_t num) {
  MC_CHECK(0 <= num_passed && num_passed <= num && num > 0);
  constexpr double kZ = 1.959963984540054;  // The quantile of the normal distribution, 97.5 %.
  const auto n = static_cast<double>(num);
  const double p = static_cast<double>(num_passed) / n;
  const double scale = 1 / (1 + kZ * kZ / n);
  const double centre = scale * (p + kZ * kZ / (2 * n));
  const double half = scale * kZ * std::sqrt(p * (1 - p) / n + kZ * kZ / (4 * n * n));
  return {num_passed == 0 ? 0 : centre - half, num_passed == num ? 1 : centre + half};
}

Interval bootstrap_mean(std::span<const double> values) {
  MC_CHECK(!values.empty());
  constexpr size_t kReplicates = 2000;
  std::mt19937_64 random(0);
  std::vector<double> means(kReplicates);
  for (double& mean : means) {
    double sum = 0;
    // The remainder gives the same numbers with every standard library; its bias is below 1e-12.
    for (size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  return {means[kReplicates / 40], means[kReplicates - 1 - kReplicates / 40]};
}

std::optional<Figure> figure_of(std::span<const double> task_values) {
  if (task_values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : task_values) sum += value;
  const auto num = static_cast<int64_t>(task_values.size());
  const bool is_proportion = std::all_of(task_values.begin(), task_values.end(),
                                         [](double value) { return value == 0 || value == 1; });
  Interval interval;
  if (is_proportion) interval = wilson(static_cast<int64_t>(std::llround(sum)), num);
  if (!is_proportion && num > 1) interval = bootstrap_mean(task_values);
  return Figure{sum / static_cast<double>(num), interval, num};
}

// ---- One run ------------------------------------------------------------------------------------

Attempt attempt_of(const task::Verdict& verdict, int64_t sample, int64_t turn) {
  Attempt out{verdict.task, sample, turn, Attempt::Outcome::kFailed, {}, {}};
  const task::Outcome& outcome = verdict.outcome;
  if (std::holds_alternative<task::Unsupported>(outcome))
    out.outcome = Attempt::Outcome::kUnsupported;
  if (std::holds_alternative<task::Infra>(outcome)) out.outcome = Attempt::Outcome::kInfra;
  const auto* passed = std::get_if<task::Passed>(&outcome);
  if (passed == nullptr) return out;
  out.outcome = Attempt::Outcome::kPassed;
  if (!passed->performance) return out;
  out.speedup = passed->performance->speedup_eager;
  out.over_compile = passed->performance->speedup_compile;
  return out;
}

BenchFigures bench_figures(std::span<const Attempt> attempts, const BenchOptions& options) {
  BenchFigures out;
  std::map<std::string, int64_t> num_by_task;
  for (const Attempt& attempt : attempts) {
    ++num_by_task[attempt.task];
    if (!is_scored(attempt)) ++out.num_not_scored;
    if (attempt.outcome == Attempt::Outcome::kMissing) ++out.num_missing;
    if (attempt.outcome == Attempt::Outcome::kUnsupported) ++out.unsupported[attempt.task];
  }
  out.num_tasks = static_cast<int64_t>(num_by_task.size());
  out.num_attempts = static_cast<int64_t>(attempts.size()) - out.num_missing;
  const std::map<std::string, Samples> tasks = scored_samples(attempts);
  for (const auto& [task, samples] : tasks) {
    out.num_samples += static_cast<int64_t>(samples.size());
    out.num_passed += count_if(samples, has_passed);
  }
  out.average = mean_over_tasks(tasks, [](const Samples& s) { return share_if(s, has_passed); });
  out.first_turn = mean_over_tasks(tasks, first_turn_share);
  out.best_turn = mean_over_tasks(
      tasks, [](const Samples& s) { return count_if(s, has_passed) > 0 ? 1.0 : 0.0; });
  for (const int64_t k : options.ks) {
    MC_CHECK(k >= 1);
    const auto at_k = [k](const Samples& samples) { return pass_at(samples, k); };
    if (const auto figure = mean_over_tasks(tasks, at_k)) out.pass_at[k] = *figure;
  }
  const bool is_timed = is_every_pass_timed(tasks);
  for (const double p : kFastP) {
    if (p > 0 && !is_timed) continue;
    if (const auto figure = fast(tasks, p)) out.fast[p] = *figure;
  }
  if (is_timed) out.faster_rate = fast(tasks, kFaster);
  out.faster_than_compiled = faster_than_compiled(tasks);
  out.uncertain = uncertain_of(tasks);
  return out;
}

// ---- Two runs -----------------------------------------------------------------------------------

std::optional<Paired> paired_difference(std::span<const Attempt> a, std::span<const Attempt> b) {
  const std::map<std::string, Samples> tasks_a = scored_samples(a);
  const std::map<std::string, Samples> tasks_b = scored_samples(b);
  Paired out;
  std::vector<double> differences;
  for (const auto& [task, samples_a] : tasks_a) {
    const auto found = tasks_b.find(task);
    if (found == tasks_b.end()) continue;
    const double share_a = share_if(samples_a, has_passed);
    const double share_b = share_if(found->second, has_passed);
    out.a += share_a;
    out.b += share_b;
    out.num_better += share_b > share_a ? 1 : 0;
    out.num_worse += share_b < share_a ? 1 : 0;
    differences.push_back(share_b - share_a);
  }
  if (differences.empty()) return std::nullopt;
  out.num_tasks = static_cast<int64_t>(differences.size());
  out.a /= static_cast<double>(out.num_tasks);
  out.b /= static_cast<double>(out.num_tasks);
  out.difference = out.b - out.a;
  out.interval = bootstrap_mean(differences);
  return out;
}

// ---- For users ----------------------------------------------------------------------------------

std::string percent(const Figure& figure) {
  return fmt::format("{:.1f} % [{:.1f}, {:.1f}]", 100 * figure.value, 100 * figure.interval.low,
                     100 * figure.interval.high);
}

std::string unsupported_line(const BenchFigures& figures) {
  int64_t num = 0;
  std::vector<std::string> names;
  for (const auto& [task, count] : figures.unsupported) {
    num += count;
    names.push_back(count == 1 ? task : fmt::format("{} ({} times)", task, count));
  }
  if (num == 0) return "";
  const size_t num_more = names.size() - std::min(names.size(), kTasksNamed);
  names.resize(names.size() - num_more);
  return fmt::format(
      "unsupported: {} of {} answers ({:.1f} %), which gain by it where they are wrong: {}{}\n",
      num, figures.num_attempts,
      100 * static_cast<double>(num) / static_cast<double>(figures.num_attempts),
      fmt::join(names, ", "), num_more > 0 ? fmt::format(", and {} tasks more", num_more) : "");
}

std::string bench_table(std::span<const BenchRow> rows) {
  if (rows.empty()) return "";
  const bool shows_turns = std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) {
    const BenchFigures& figures = row.figures;
    const int64_t num_judged = figures.num_samples - figures.num_missing;
    return figures.num_attempts > num_judged + figures.num_not_scored;
  });
  const Cells header = header_of(rows.front().figures, shows_turns);
  std::vector<Cells> lines = {header};
  for (const BenchRow& row : rows) lines.push_back(cells_of(row, header));
  return lines_of(lines) + unsupported_line(rows.front().figures);
}

}  // namespace mc::report
