// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mc::cli {
namespace {

// Further away than this a name is another word, not a slip; nor may half of the word be wrong.
constexpr size_t kDistanceMax = 2;

bool is_near(const std::string& word, const std::string& name) {
  const size_t distance = edit_distance(word, name);
  return distance <= kDistanceMax && 2 * distance <= word.size();
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // Distances of the letters so far of a to those of b.
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::optional<std::string> unknown_subcommand(const std::vector<std::string>& words,
                                              const std::vector<std::string>& names) {
  if (words.empty() || words[0].starts_with('-')) return std::nullopt;
  const std::string& word = words[0];
  if (std::ranges::find(names, word) != names.end()) return std::nullopt;
  const auto nearest = std::ranges::min_element(
      names, {}, [&](const std::string& name) { return edit_distance(word, name); });
  const bool is_slip = nearest != names.end() && is_near(word, *nearest);
  return "no subcommand " + word +
         (is_slip ? "; did you mean " + *nearest + "?" : "; --help lists them");
}

std::optional<std::string> unknown_option(const std::vector<std::string>& words,
                                          const std::vector<std::string>& options) {
  for (const std::string& word : words) {
    if (!word.starts_with("--") || options.empty()) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (std::ranges::find(options, name) != options.end()) continue;
    const auto nearest = std::ranges::min_element(
        options, {}, [&](const std::string& option) { return edit_distance(name, option); });
    if (is_near(name, *nearest))
      return "did you mean --" + *nearest + " in place of --" + name + "?";
  }
  return std::nullopt;
}

}  // namespace mc::cli
