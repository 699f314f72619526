// SPDX-License-Identifier: Apache-2.0
//
// The reply to a subcommand, or an option, that there is not.
// Example:
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

// The same for options: the first of `words` that begins with "--", is none of `options` ("task")
// and is near to one, as "did you mean --task in place of --taks?".
std::optional<std::string> unknown_option(const std::vector<std::string>& words,
                                          const std::vector<std::string>& options);

}  // namespace mc::cli

#endif  // MC_CLI_SUGGEST_H_
