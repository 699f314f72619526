// SPDX-License-Identifier: Apache-2.0
//
// Edits of a text, collected first and applied at once, so that all offsets refer to the original.
#ifndef MC_LEX_EDIT_H_
#define MC_LEX_EDIT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mc::lex {

struct Edit {
  std::size_t offset = 0;
  std::size_t size = 0;  // The size of the removed text; 0 inserts.
  std::string replacement;
};

// The text with the edits.  REQUIRES: each edit is within the text, and no two overlap.  Their
// order does not matter, except for insertions at the same offset.
std::string apply_edits(std::string_view text, std::vector<Edit> edits);

}  // namespace mc::lex

#endif  // MC_LEX_EDIT_H_
