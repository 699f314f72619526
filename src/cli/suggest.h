// SPDX-License-Identifier: Apache-2.0
//
// The reply to a command line that cannot be read.
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

// How many letters have to be added, left out or replaced to make `b` of `a` (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b);

// The one of `names` that `word` is nearest to, where it is so near that it may be meant.
std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& names);

// Empty where `words`, the program's arguments, do not begin with a wrong subcommand.  Otherwise
// one line that names it, and the nearest of `names` where one is near.
std::optional<std::string> unknown_subcommand(const std::vector<std::string>& words,
                                              const std::vector<std::string>& names);

// The same for options: the first of `words` that begins with "--", is none of `options` ("task")
// and is near to one, as "did you mean --task in place of --taks?".
std::optional<std::string> unknown_option(const std::vector<std::string>& words,
                                          const std::vector<std::string>& options);

// The parser's error in words of a user: "--jobs is missing", "unknown option --frobnicate".
std::string message_of(const CLI::ParseError& error);

// That, and the way on: the option that was meant, or the help of the subcommand.
std::string advice_for(const CLI::ParseError& error, const CLI::App& app,
                       const std::string& program, const std::vector<std::string>& words);

}  // namespace mc::cli

#endif  // MC_CLI_SUGGEST_H_
