// SPDX-License-Identifier: Apache-2.0
#include "musify/edits.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/check.h"

namespace mc::musify {
namespace {

bool holds(std::string_view line, std::string_view marker) {
  return line.find(marker) != std::string_view::npos;
}

}  // namespace

Edits::Edits(std::string_view text, Lines lines)
    : text_(text), lines_(lines), is_taken_(text.size() + 1) {
  bool is_excluded = false;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    if (holds(line, "MUSIFY_EXCL_START")) is_excluded = true;
    line_starts_.push_back(start);
    is_line_excluded_.push_back(is_excluded || holds(line, "MUSIFY_EXCL_LINE") ? 1 : 0);
    if (holds(line, "MUSIFY_EXCL_STOP")) is_excluded = false;
    start = end + 1;
  }
}

bool Edits::replace(std::size_t offset, std::size_t size, const std::string& replacement,
                    const std::string& rule) {
  MC_CHECK(offset + size <= text_.size());
  const auto begin = is_taken_.begin() + static_cast<std::ptrdiff_t>(offset);
  const auto end = begin + static_cast<std::ptrdiff_t>(size);
  if (is_excluded(offset) || std::find(begin, end, 1) != end) return false;
  if (has_insertion_within(offset, size)) return false;
  std::fill(begin, end, 1);
  edits_.push_back({offset, size, with_line_ends(offset, size, replacement)});
  rules_.push_back(rule);
  return true;
}

std::string Edits::with_line_ends(std::size_t offset, std::size_t size,
                                  std::string replacement) const {
  if (lines_ == Lines::kMayGo) return replacement;
  const auto removed = std::ranges::count(text_.substr(offset, size), '\n');
  const auto kept = std::ranges::count(replacement, '\n');
  if (removed > kept) replacement.append(static_cast<std::size_t>(removed - kept), '\n');
  return replacement;
}

bool Edits::insert(std::size_t offset, const std::string& addition, const std::string& rule) {
  MC_CHECK(offset <= text_.size());
  const bool is_inside_change = offset > 0 && is_taken_[offset - 1] != 0 && is_taken_[offset] != 0;
  if (is_excluded(offset) || is_inside_change) return false;
  insertions_.insert(offset);
  edits_.push_back({offset, 0, addition});
  rules_.push_back(rule);
  return true;
}

bool Edits::is_excluded(std::size_t offset) const {
  return is_line_excluded_[location_of(offset).line - 1] != 0;
}

Location Edits::location_of(std::size_t offset) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::size_t>(next - line_starts_.begin());
  return {line, offset - line_starts_[line - 1] + 1};
}

bool Edits::has_insertion_within(std::size_t offset, std::size_t size) const {
  const auto next = insertions_.upper_bound(offset);
  return next != insertions_.end() && *next < offset + size;
}

std::vector<std::size_t> Edits::order() const {
  MC_CHECK(rules_.size() == edits_.size());
  std::vector<std::size_t> order(edits_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, {}, [&](std::size_t i) { return std::pair(edits_[i].offset, edits_[i].size > 0); });
  return order;
}

std::string Edits::apply() const {
  std::vector<lex::Edit> edits;
  for (const std::size_t i : order()) edits.push_back(edits_[i]);
  return lex::apply_edits(text_, std::move(edits));
}

std::vector<Change> Edits::changes() const {
  std::vector<Change> changes;
  for (const std::size_t i : order()) {
    const lex::Edit& edit = edits_[i];
    changes.push_back({location_of(edit.offset), std::string(text_.substr(edit.offset, edit.size)),
                       edit.replacement, rules_[i]});
  }
  return changes;
}

}  // namespace mc::musify
