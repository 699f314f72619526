// SPDX-License-Identifier: Apache-2.0
#include "task/fixed_sizes.h"

#include <algorithm>
#include <string>

#include "core/text.h"

namespace mc::task {
namespace {

constexpr size_t kExcerptBytesMax = 200;
constexpr size_t kLinesOfOneSizeMax = 3;

// The line without a comment that begins with // or, in Python, #; a preprocessor directive stays.
std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find("//"));
  const size_t hash = line.find('#');
  const bool is_directive = hash != std::string_view::npos && line.substr(hash).starts_with("#def");
  return is_directive ? line : line.substr(0, hash);
}

// The column of `number` as a whole word; 0 where it does not occur.
int column_of(std::string_view line, std::string_view number) {
  for (size_t at = line.find(number); at != std::string_view::npos;
       at = line.find(number, at + 1)) {
    const size_t end = at + number.size();
    const bool begins = at == 0 || (!is_word_byte(line[at - 1]) && line[at - 1] != '.');
    const bool ends = end == line.size() || (!is_word_byte(line[end]) && line[end] != '.');
    if (begins && ends) return static_cast<int>(at) + 1;
  }
  return 0;
}

}  // namespace

std::vector<SourceLocation> lines_with_sizes(std::string_view module,
                                             const std::set<int64_t>& sizes) {
  std::vector<SourceLocation> places;
  for (auto size = sizes.rbegin(); size != sizes.rend() && *size >= kFixedSizeMin; ++size) {
    const std::string number = std::to_string(*size);
    size_t num_found = 0;
    int line_number = 0;
    for (std::string_view rest = module; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      ++line_number;
      const int column = column_of(without_comment(line), number);
      const bool is_known = std::ranges::any_of(
          places, [&](const SourceLocation& location) { return location.line == line_number; });
      if (column == 0 || is_known) continue;
      if (num_found == kLinesOfOneSizeMax || places.size() == kFixedSizesMax) break;
      ++num_found;
      places.push_back(
          {"candidate", line_number, column, std::string(line.substr(0, kExcerptBytesMax))});
    }
  }
  return places;
}

}  // namespace mc::task
