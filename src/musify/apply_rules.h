// SPDX-License-Identifier: Apache-2.0
//
// Applies the rules that change one word, or several adjacent words.
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

// Proposes the changes of all rules, in the rules' order.  Returns the architecture guards whose
// threshold no rule knows; these stay unchanged.
std::vector<Finding> apply_rules(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, Edits& edits);

// The part of a path after its last slash.
std::string file_name(const std::string& path);

// A range of bytes in the file.
struct Removal {
  std::size_t begin = 0;
  std::size_t end = 0;
};
// The range for removing the list item or argument [first, last] of `words`: with the comma and the
// space after it or, for the last item, with the comma before it.
Removal removal_of(const std::vector<Word>& words, std::size_t first, std::size_t last);

}  // namespace mc::musify

#endif  // MC_MUSIFY_APPLY_RULES_H_
