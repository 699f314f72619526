// SPDX-License-Identifier: Apache-2.0
#include "musify/unified_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mc::musify {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kTableMax = size_t{1} << 24;  // A larger part is one change.

using Lines = std::vector<std::string_view>;

struct Edit {
  char kind;  // ' ', '-' or '+'
  std::string_view line;
};

// The lines with their ends.
Lines lines_with_ends(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

// Lengths of the longest common subsequences of all ends of the two.
std::vector<uint32_t> common_lengths(const Lines& a, const Lines& b) {
  const size_t width = b.size() + 1;
  std::vector<uint32_t> table((a.size() + 1) * width);
  for (size_t i = a.size(); i-- > 0;) {
    for (size_t j = b.size(); j-- > 0;) {
      table[i * width + j] = a[i] == b[j]
                                 ? table[(i + 1) * width + j + 1] + 1
                                 : std::max(table[(i + 1) * width + j], table[i * width + j + 1]);
    }
  }
  return table;
}

void add_changes(const Lines& a, const Lines& b, std::vector<Edit>& edits) {
  const size_t width = b.size() + 1;
  std::vector<uint32_t> table;
  if ((a.size() + 1) * width <= kTableMax) table = common_lengths(a, b);
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool both = i < a.size() && j < b.size();
    if (both && !table.empty() && a[i] == b[j]) {
      edits.push_back({' ', a[i++]});
      ++j;
    } else if (j == b.size() || (both && (table.empty() || table[(i + 1) * width + j] >=
                                                               table[i * width + j + 1]))) {
      edits.push_back({'-', a[i++]});
    } else {
      edits.push_back({'+', b[j++]});
    }
  }
}

std::vector<Edit> edits_of(const Lines& before, const Lines& after) {
  const size_t most = std::min(before.size(), after.size());
  size_t head = 0, tail = 0;
  while (head < most && before[head] == after[head]) ++head;
  while (tail < most - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) {
    ++tail;
  }
  std::vector<Edit> edits;
  for (size_t i = 0; i < head; ++i) edits.push_back({' ', before[i]});
  const auto middle = [&](const Lines& lines) {
    return Lines(lines.begin() + static_cast<std::ptrdiff_t>(head),
                 lines.end() - static_cast<std::ptrdiff_t>(tail));
  };
  add_changes(middle(before), middle(after), edits);
  for (size_t i = before.size() - tail; i < before.size(); ++i) edits.push_back({' ', before[i]});
  return edits;
}

// "12,3": the first line and their number; a range of none names the line before it.
std::string range(size_t first, size_t count) {
  return std::to_string(count == 0 ? first : first + 1) + "," + std::to_string(count);
}

// The edits from `begin` up to `end`, before which so many lines are in each text.
std::string hunk(const std::vector<Edit>& edits, size_t begin, size_t end, size_t before_lines,
                 size_t after_lines) {
  size_t removed = 0, added = 0;
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    const auto& [kind, line] = edits[i];
    removed += kind != '+' ? 1 : 0;
    added += kind != '-' ? 1 : 0;
    text += kind;
    text += line;
    if (!line.ends_with('\n')) text += "\n\\ No newline at end of file\n";
  }
  return "@@ -" + range(before_lines, removed) + " +" + range(after_lines, added) + " @@\n" + text;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view before_name, std::string_view after_name) {
  const std::vector<Edit> edits = edits_of(lines_with_ends(before), lines_with_ends(after));
  std::string text;
  size_t done = 0, before_lines = 0, after_lines = 0;  // Behind the last hunk.
  const auto skip_to = [&](size_t place) {
    for (; done < place; ++done) {
      before_lines += edits[done].kind != '+' ? 1 : 0;
      after_lines += edits[done].kind != '-' ? 1 : 0;
    }
  };
  for (size_t i = 0; i < edits.size(); ++i) {
    if (edits[i].kind == ' ') continue;
    size_t last = i;  // The last change of this hunk.
    for (size_t k = i; k < edits.size() && k <= last + 2 * kContext; ++k) {
      if (edits[k].kind != ' ') last = k;
    }
    const size_t begin = std::max(done, i - std::min(i, kContext));
    const size_t end = std::min(edits.size(), last + 1 + kContext);
    skip_to(begin);
    text += hunk(edits, begin, end, before_lines, after_lines);
    skip_to(end);
    i = end - 1;
  }
  if (text.empty()) return "";
  return "--- " + std::string(before_name) + "\n+++ " + std::string(after_name) + "\n" + text;
}

}  // namespace mc::musify
