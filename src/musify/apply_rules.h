// SPDX-License-Identifier: Apache-2.0
//
// The rules that change one word, or a few words in a row.
#ifndef MC_MUSIFY_APPLY_RULES_H_
#define MC_MUSIFY_APPLY_RULES_H_

#include <set>
#include <string>
#include <vector>

#include "musify/edits.h"
#include "musify/port.h"
#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

using Names = std::set<std::string, std::less<>>;

// Proposes the changes of all rules, in their order.  Returns the guards whose threshold no rule
// knows: they keep their words.
std::vector<Finding> apply_rules(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, Edits& edits);

// The part of a path behind its last slash.
std::string file_name(const std::string& path);

// Bytes of the file.
struct Removal {
  std::size_t begin = 0;
  std::size_t end = 0;
};
// The list item or argument [first, last] of `words` with the comma and the space after it, or,
// where it is the last one, with the comma before it.
Removal removal_of(const std::vector<Word>& words, std::size_t first, std::size_t last);

}  // namespace mc::musify

#endif  // MC_MUSIFY_APPLY_RULES_H_
