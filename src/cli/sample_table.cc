// SPDX-License-Identifier: Apache-2.0
#include "cli/sample_table.h"

#include <algorithm>
#include <cstdio>
#include <variant>

#include <unistd.h>

#include <fmt/format.h>

#include "bench/winner.h"

namespace mc::cli {
namespace {

constexpr int64_t kRowsMax = 24;  // More would not fit a terminal.

}  // namespace

SampleTable::SampleTable(int64_t samples, int64_t turns)
    : turns_(turns),
      is_terminal_(::isatty(STDERR_FILENO) == 1 && samples <= kRowsMax),
      rows_(static_cast<size_t>(samples)) {}

void SampleTable::show(const store::Judgement& judgement) {
  const auto sample = static_cast<size_t>(judgement.key.sample);
  if (sample >= rows_.size()) return;
  Row& row = rows_[sample];
  const std::optional<double> speedup = bench::speedup_of(judgement.verdict);
  if (speedup) row.best = std::max(row.best.value_or(0), *speedup);
  const bool is_pass = std::holds_alternative<task::Passed>(judgement.verdict.outcome);
  const std::string speed = speedup ? fmt::format("{:.2f}x", *speedup) : is_pass ? "not timed" : "";
  row.text = fmt::format("turn {} of {}  {:11}  {:9}", judgement.key.turn + 1, turns_,
                         task::outcome_name(judgement.verdict.outcome), speed);
  if (row.best) row.text += fmt::format("  best {:.2f}x", *row.best);
  if (is_terminal_) {
    draw();
  } else {
    std::fprintf(stderr, "%s\n", line(sample).c_str());
  }
}

std::string SampleTable::line(size_t sample) const {
  std::string text = fmt::format("sample {}  {}", sample, rows_[sample].text);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

void SampleTable::draw() {
  if (is_drawn_) std::fprintf(stderr, "\033[%zuA", rows_.size());
  for (size_t i = 0; i < rows_.size(); ++i) std::fprintf(stderr, "\r\033[K%s\n", line(i).c_str());
  std::fflush(stderr);
  is_drawn_ = true;
}

}  // namespace mc::cli
