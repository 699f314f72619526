// SPDX-License-Identifier: Apache-2.0
//
// Checks of options that are numbers without an upper bound.  CLI11's own tell the largest double.
//
//   command.add_option("--seed", seed, "…")->check(kNotNegative);
#ifndef MC_CLI_NUMBERS_H_
#define MC_CLI_NUMBERS_H_

#include <cmath>
#include <string>

#include <CLI/CLI.hpp>

namespace mc::cli {

inline const CLI::Validator kNotNegative(
    [](const std::string& text) {
      double number = 0;
      const bool is_good =
          CLI::detail::lexical_cast(text, number) && number >= 0 && std::isfinite(number);
      return is_good ? std::string() : "a number from 0 on is needed, not " + text;
    },
    "NONNEGATIVE");

inline const CLI::Validator kPositive(
    [](const std::string& text) {
      double number = 0;
      const bool is_good =
          CLI::detail::lexical_cast(text, number) && number > 0 && std::isfinite(number);
      return is_good ? std::string() : "a number above 0 is needed, not " + text;
    },
    "POSITIVE");

}  // namespace mc::cli

#endif  // MC_CLI_NUMBERS_H_
