// SPDX-License-Identifier: Apache-2.0
//
// What to say to a subcommand that there is not.
//
//   musacoder evl  →  "no subcommand evl; did you mean eval?"
#ifndef MC_CLI_SUGGEST_H_
#define MC_CLI_SUGGEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mc::cli {

// How many letters have to be added, left out or replaced to make `b` of `a` (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

// Empty where `words`, the program's arguments, do not begin with a wrong subcommand.  Otherwise
// one line that names it, and the nearest of `names` where one is near.
std::optional<std::string> unknown_subcommand(const std::vector<std::string>& words,
                                              const std::vector<std::string>& names);

}  // namespace mc::cli

#endif  // MC_CLI_SUGGEST_H_
