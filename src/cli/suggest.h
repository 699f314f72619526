// SPDX-License-Identifier: Apache-2.0
//
// Messages for a command line that cannot be parsed.
// Example:
//   musacoder evl  →  "no subcommand evl; did you mean eval?"
#ifndef MC_CLI_SUGGEST_H_
#define MC_CLI_SUGGEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace mc::cli {

// The minimum number of letters to add, remove or replace to turn `a` into `b` (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

// The name nearest to `word`, if it is near enough to be meant.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& names);

// If the program's arguments `words` begin with an unknown subcommand: one line that names it, and
// the nearest of `names` if one is near.  Otherwise empty.
std::optional<std::string> unknown_subcommand(const std::vector<std::string>& words,
                                              const std::vector<std::string>& names);

// The suggestion for the first of `words` that begins with "--", is not in `options` (without
// dashes, "task") and is near to one of them: "did you mean --task in place of --taks?".
std::optional<std::string> unknown_option(const std::vector<std::string>& words,
                                          const std::vector<std::string>& options);

// The parser's error in the user's terms: "--jobs is missing", "unknown option --frobnicate".
std::string message_of(const CLI::ParseError& error);

// The parser's error with advice: the option that was probably meant, or how to get the
// subcommand's help.
std::string advice_for(const CLI::ParseError& error, const CLI::App& app,
                       const std::string& program, const std::vector<std::string>& words);

}  // namespace mc::cli

#endif  // MC_CLI_SUGGEST_H_
