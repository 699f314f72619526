// SPDX-License-Identifier: Apache-2.0
//
// Changes to a text, collected first and applied at once, so that all offsets are the original's.
#ifndef MC_LEX_EDIT_H_
#define MC_LEX_EDIT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mc::lex {

struct Edit {
  std::size_t offset = 0;
  std::size_t size = 0;  // The size of what is removed; 0 inserts.
  std::string replacement;
};

// REQUIRES: each edit lies in the text, and no two overlap.  Their order does not matter, but
// insertions at one place keep theirs.
std::string apply_edits(std::string_view text, std::vector<Edit> edits);

}  // namespace mc::lex

#endif  // MC_LEX_EDIT_H_
