// SPDX-License-Identifier: Apache-2.0
#include "cli/optimize_report.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/live.h"
#include "bench/winner.h"
#include "core/check.h"
#include "report/report.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using store::Judgement;

constexpr size_t kPhraseBytesMax = 160;

}  // namespace

bool ends_search(const task::Verdict& verdict, double enough) {
  const auto* passed = std::get_if<task::Passed>(&verdict.outcome);
  return passed != nullptr && bench::speedup_of(verdict).value_or(enough) >= enough;
}

std::string verdict_line(const Judgement& judgement, int64_t turns, std::optional<double>& best) {
  const std::optional<double> speedup = bench::speedup_of(judgement.verdict);
  if (speedup) best = std::max(best.value_or(0), *speedup);
  const bool is_pass = std::holds_alternative<task::Passed>(judgement.verdict.outcome);
  const std::string speed = speedup ? fmt::format("{:.2f}x", *speedup) : is_pass ? "not timed" : "";
  std::string line = fmt::format("sample {}  turn {} of {}  {:11}  {:9}", judgement.key.sample,
                                 judgement.key.turn + 1, turns,
                                 task::outcome_name(judgement.verdict.outcome), speed);
  if (best) line += fmt::format("  best {:.2f}x", *best);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string module_name(const std::string& stem) {
  std::string name = stem + "_optimized";
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

void print_winner(std::ostream& out, const Judgement& winner, const fs::path& path) {
  const task::Verdict& verdict = winner.verdict;
  MC_CHECK(std::holds_alternative<task::Passed>(verdict.outcome));
  const auto speedup = bench::speedup_of(verdict);
  out << fmt::format("{}: correct", store::to_string(winner.key));
  if (speedup) out << ", " << report::phrase(verdict, kPhraseBytesMax);
  out << "\n";
  if (!speedup) {
    out << "Its speed was not measured: nothing was timed on the "
        << task::to_string(verdict.backend) << " backend.\n";
  } else if (*speedup < 1) {
    out << "It is not faster than eager PyTorch.\n";
  }
  const bool is_reduced = !verdict.telemetry.reduction.reason.empty();
  out << (bench::is_general(verdict) ? "It is right at other sizes as well.\n"
          : is_reduced ? "It was verified at reduced sizes alone, so PyTorch runs in its "
                         "place: judge it on a GPU.\n"
                       : "At other sizes than the verified ones PyTorch runs.\n");
  out << "Written: " << path.string() << ", with its verdict beside it\n";
}

void print_failure(std::ostream& out, const std::vector<Judgement>& all,
                   const std::string& folder) {
  std::map<std::string, int> outcomes;
  for (const Judgement& one : all) ++outcomes[task::outcome_name(one.verdict.outcome)];
  std::vector<std::string> parts;
  for (const auto& [name, num] : outcomes) parts.push_back(fmt::format("{} {}", num, name));
  out << fmt::format(
      "No answer is correct ({}); musacoder report {} --out page.html shows "
      "them\n",
      parts.empty() ? "there is none" : fmt::format("{}", fmt::join(parts, ", ")), folder);
}

std::string end_of_search(const std::string& run, const Judgement* winner, const fs::path& path) {
  Json members = {{"winner", nullptr}};
  if (winner != nullptr) {
    members = {{"winner", store::to_string(winner->key)}, {"module", path.string()}};
  }
  return bench::end_event(run, members.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace mc::cli
