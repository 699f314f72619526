// SPDX-License-Identifier: Apache-2.0
#include "rl/bdr.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/hash.h"
#include "legality/extract.h"
#include "rl/score.h"
#include "task/verdict.h"

namespace mc::rl {
namespace {

Stage stage_of_run(std::string_view stage) {
  if (stage == "record") return Stage::kRecord;
  if (stage == "compile") return Stage::kCompile;
  if (stage == "load") return Stage::kLoad;
  if (stage == "init") return Stage::kInit;
  return Stage::kForward;
}

Stage stage_of_rule(std::string_view when) {
  if (when == "static") return Stage::kLegality;
  if (when == "link") return Stage::kCompile;
  return when == "timing" ? Stage::kComparison : Stage::kForward;
}

struct FailedStage {
  using Found = std::optional<Stage>;
  Found operator()(const task::Unextractable&) const { return Stage::kExtraction; }
  Found operator()(const task::Illegal& illegal) const { return stage_of_rule(illegal.when); }
  Found operator()(const task::CompileFailed&) const { return Stage::kCompile; }
  Found operator()(const task::Crashed& crashed) const { return stage_of_run(crashed.stage); }
  Found operator()(const task::TimedOut& timed_out) const { return stage_of_run(timed_out.stage); }
  Found operator()(const task::OutOfMemory& oom) const { return stage_of_run(oom.stage); }
  Found operator()(const task::Wrong&) const { return Stage::kComparison; }
  Found operator()(const task::Passed&) const { return std::nullopt; }
  Found operator()(const task::Unsupported&) const { return std::nullopt; }
  Found operator()(const task::Infra&) const { return std::nullopt; }
};

bool is_in_range(const RetryOptions& options) {
  return options.capacity >= 1 && options.replays_max >= 1 && options.probability >= 0 &&
         options.probability <= 1;
}

bool is_older(const FailedCandidate& a, const FailedCandidate& b) {
  return std::tie(a.step, a.group) < std::tie(b.step, b.group);
}

}  // namespace

std::optional<Stage> failed_stage(const task::Outcome& outcome) {
  return std::visit(FailedStage{}, outcome);
}

std::string code_of(std::string_view answer) {
  const legality::Extraction extraction = legality::extract(answer);
  if (const auto* found = std::get_if<legality::Extracted>(&extraction)) {
    return "```python\n" + found->module + "```\n";
  }
  return std::string(legality::visible_answer(answer));
}

std::string retry_key(const FailedCandidate& candidate) {
  return content_hash({candidate.task, candidate.code});
}

bool is_all_failed(std::span<const std::vector<std::optional<double>>> samples) {
  bool is_judged = false;
  for (const auto& turns : samples) {
    for (const auto& s : turns) {
      if (!s) continue;
      is_judged = true;
      if (*s >= kScorePassed) return false;
    }
  }
  return is_judged;
}

size_t choose_failure(std::span<const FailedCandidate> candidates) {
  MC_CHECK(!candidates.empty());
  // The smallest tuple is the best candidate.
  const auto rank = [](const FailedCandidate& candidate) {
    return std::tuple(-candidate.s, -static_cast<int>(candidate.stage), candidate.code.size(),
                      retry_key(candidate));
  };
  size_t best = 0;
  for (size_t i = 1; i < candidates.size(); ++i) {
    if (rank(candidates[i]) < rank(candidates[best])) best = i;
  }
  return best;
}

RetryBuffer::RetryBuffer(const RetryOptions& options) : options_(options) {
  MC_CHECK(is_in_range(options));
}

void RetryBuffer::insert(std::vector<FailedCandidate> failures) {
  std::stable_sort(failures.begin(), failures.end(), is_older);
  for (FailedCandidate& failure : failures) insert_one(std::move(failure));
}

void RetryBuffer::insert_one(FailedCandidate failure) {
  MC_CHECK(failure.s < kScorePassed);
  if (is_exhausted(failure.task)) return;
  const uint64_t ready_at = failure.step + 1;
  if (const auto old = find(failure.task); old != state_.items.end()) {
    if (is_older(failure, old->candidate)) return;
    *old = {std::move(failure), std::max(ready_at, old->ready_at)};
    return;
  }
  state_.items.push_back({std::move(failure), ready_at});
  if (state_.items.size() > options_.capacity) state_.items.erase(state_.items.begin());
}

void RetryBuffer::solved(std::string_view task) {
  if (const auto item = find(task); item != state_.items.end()) state_.items.erase(item);
  state_.replays.erase(std::string(task));
}

std::optional<FailedCandidate> RetryBuffer::draw(double u, uint64_t step) {
  MC_CHECK(u >= 0 && u < 1);
  if (u >= options_.probability) return std::nullopt;
  const auto item = std::find_if(state_.items.begin(), state_.items.end(),
                                 [step](const RetryItem& i) { return i.ready_at <= step; });
  if (item == state_.items.end()) return std::nullopt;
  FailedCandidate candidate = item->candidate;
  ++state_.replays[candidate.task];
  item->ready_at = step + 1;
  if (is_exhausted(candidate.task)) state_.items.erase(item);
  return candidate;
}

double RetryBuffer::age_mean(uint64_t step) const {
  if (state_.items.empty()) return 0;
  double sum = 0;
  for (const RetryItem& item : state_.items) {
    sum += static_cast<double>(step) - static_cast<double>(item.candidate.step);
  }
  return sum / static_cast<double>(state_.items.size());
}

bool RetryBuffer::is_exhausted(const std::string& task) const {
  const auto found = state_.replays.find(task);
  const uint32_t replays = found == state_.replays.end() ? 0 : found->second;
  return replays >= options_.replays_max;
}

std::vector<RetryItem>::iterator RetryBuffer::find(std::string_view task) {
  return std::find_if(state_.items.begin(), state_.items.end(),
                      [task](const RetryItem& item) { return item.candidate.task == task; });
}

}  // namespace mc::rl
