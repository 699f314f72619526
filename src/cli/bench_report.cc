// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_report.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/figures.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/file.h"
#include "report/bench.h"
#include "report/bench_json.h"
#include "report/report.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using store::Answer;
using store::Judgement;

std::string paired_line(const report::Paired& paired, const std::string& against) {
  return fmt::format(
      "against {}, {} tasks of both: {:.1f} % there, {:.1f} % here, difference {:+.1f} points "
      "[{:+.1f}, {:+.1f}]; better at {}, worse at {}\n",
      against, paired.num_tasks, 100 * paired.a, 100 * paired.b, 100 * paired.difference,
      100 * paired.interval.low, 100 * paired.interval.high, paired.num_better, paired.num_worse);
}

// The run for a value of --against: FOLDER#RUN, or a folder's last run that is not one of --also.
Result<bench::RunData> run_named(const std::string& name) {
  std::error_code ignored;
  size_t mark = name.find('#');  // The name of the folder and that of the run may both contain '#'.
  while (mark < name.size() && !fs::is_directory(name.substr(0, mark), ignored)) {
    mark = name.find('#', mark + 1);
  }
  if (fs::is_directory(name, ignored)) mark = std::string::npos;
  const fs::path folder = name.substr(0, mark);
  MC_TRY(const auto store, store::Store::open_to_read(folder / store::kStoreName), "--against");
  MC_TRY(const auto runs, store->runs(), "--against");
  const std::string wanted = mark == std::string::npos ? "" : name.substr(mark + 1);
  const auto found = std::find_if(runs.rbegin(), runs.rend(), [&](const store::Run& run) {
    if (!wanted.empty()) return run.record().name == wanted;
    return !nlohmann::json::parse(run.record().settings, nullptr, false).contains("also");
  });
  if (found == runs.rend()) return invalid("--against: " + folder.string() + " has no such run");
  return bench::read_run(*found);
}

// Writes the records as JSON Lines, for other programs.
Status export_lines(const fs::path& folder, const bench::RunData& data) {
  std::string answers;
  std::string verdicts;
  for (const Answer& answer : data.answers) answers += store::json_line(answer);
  for (const Judgement& one : data.judgements) verdicts += store::json_line(one);
  MC_TRY_VOID(write_file_atomically(folder / "answers.jsonl", answers), "bench");
  return write_file_atomically(folder / "verdicts.jsonl", verdicts);
}

// Prints why requests got no answer; the text of the reason may differ for each request.
void print_failures(const bench::SamplingEnd& end, std::ostream& out) {
  constexpr size_t kReasonsMax = 10;
  size_t num_shown = 0;
  for (const auto& [what, num] : end.failed) {
    if (++num_shown > kReasonsMax) break;
    out << "  " << num << " times " << what << "\n";
  }
  if (end.failed.size() > kReasonsMax) {
    out << "  and " << end.failed.size() - kReasonsMax << " other reasons\n";
  }
}

}  // namespace

void add_missing(CLI::App& command, bench::Missing& missing) {
  add_choice(command, "--missing", missing,
             {{"failed", bench::Missing::kFailed}, {"left-out", bench::Missing::kLeftOut}},
             "Samples without a verdict: failed, or left-out of all figures");
}

Result<std::string> report_bench(const BenchArguments& arguments, const store::Run& run,
                                 const bench::SamplingEnd& end, std::ostream& out) {
  MC_TRY(const bench::RunData data, bench::read_run(run), "bench");
  if (data.answers.empty()) {
    const Error none = invalid("no answer to any task");
    return end.last_failure ? with_context(*end.last_failure, none.message) : none;
  }
  const std::vector<report::BenchRow> rows = bench::rows_of(data, arguments.missing);
  std::vector<report::Judged> judged;
  for (const Judgement& one : data.judgements) {
    judged.push_back({one.verdict, one.reward, one.seconds});
  }
  const bench::Coverage coverage = bench::coverage_of(data);
  const int64_t cut = std::ranges::count(data.answers, "length", &Answer::finish);
  std::optional<report::Paired> paired;
  if (!arguments.against.empty()) {
    MC_TRY(const bench::RunData other, run_named(arguments.against), "--against");
    paired = report::paired_difference(bench::attempts_of(other, arguments.missing),
                                       bench::attempts_of(data, arguments.missing));
  }
  const std::string summary = report::bench_json({.rows = rows,
                                                  .judged = judged,
                                                  .num_wanted = coverage.num_wanted,
                                                  .num_judged = coverage.num_judged,
                                                  .num_missing = coverage.num_missing,
                                                  .num_cut = cut,
                                                  .paired = paired});
  if (arguments.protocol.empty()) {  // The files of the folder belong to the main run.
    MC_TRY_VOID(export_lines(arguments.out, data), "bench");
    MC_TRY_VOID(write_file_atomically(fs::path(arguments.out) / "summary.json", summary), "bench");
  }
  if (arguments.details) out << report::table(judged, {}) << "\n";
  out << report::bench_table(rows) << report::summary(judged);
  if (const std::string text = bench::coverage_text(coverage, arguments.missing); !text.empty()) {
    out << text << "\n";
  }
  print_failures(end, out);
  if (cut > 0) {
    out << fmt::format("{} cut off at the limit of tokens (--max-tokens), judged as they are\n",
                       cut);
  }
  if (paired) out << paired_line(*paired, arguments.against);
  return summary;
}

}  // namespace mc::cli
