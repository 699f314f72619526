// SPDX-License-Identifier: Apache-2.0
//
// The changes that rules propose for one text.  Each byte is changed at most once: the first
// proposal wins.
#ifndef MC_MUSIFY_EDITS_H_
#define MC_MUSIFY_EDITS_H_

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lex/edit.h"
#include "musify/port.h"

namespace mc::musify {

class Edits {
 public:
  // REQUIRES: `text` outlives this object.
  explicit Edits(std::string_view text, Lines lines = Lines::kMayGo);

  // Proposes a change.  Returns false, without a proposal, if a part of the range already has a
  // change or is excluded by a marker.
  bool replace(std::size_t offset, std::size_t size, const std::string& replacement,
               const std::string& rule);
  bool insert(std::size_t offset, const std::string& addition, const std::string& rule);

  bool is_changed(std::size_t offset) const { return is_taken_[offset] != 0; }
  bool is_excluded(std::size_t offset) const;
  bool empty() const { return edits_.empty(); }
  char at(std::size_t offset) const { return text_[offset]; }
  // The original bytes.
  std::string_view text(std::size_t begin, std::size_t end) const {
    return text_.substr(begin, end - begin);
  }
  Location location_of(std::size_t offset) const;

  std::string apply() const;
  // The changes, in the order of their positions.
  std::vector<Change> changes() const;

 private:
  // The replacement; if lines must stay, with the line breaks of the original text that it lacks.
  std::string with_line_ends(std::size_t offset, std::size_t size, std::string replacement) const;

  std::string_view text_;
  Lines lines_;
  std::vector<std::size_t> line_starts_;
  std::vector<char> is_line_excluded_;
  std::vector<char> is_taken_;  // One element for each byte, and one for the end.
  // The indices of edits_ in the order of their positions, insertions before replacements.
  std::vector<std::size_t> order() const;
  bool has_insertion_within(std::size_t offset, std::size_t size) const;

  std::vector<lex::Edit> edits_;
  std::vector<std::string> rules_;    // The rule of each edit.
  std::set<std::size_t> insertions_;  // The offsets of edits that remove nothing.
};

}  // namespace mc::musify

#endif  // MC_MUSIFY_EDITS_H_
