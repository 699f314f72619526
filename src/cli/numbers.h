// SPDX-License-Identifier: Apache-2.0
//
// Checks of options that are numbers.  The ranges of CLI11 let nan pass, since it is neither below
// nor above a bound, and their message about a range without an end holds the largest double, 309
// digits.
// Example:
//   command.add_option("--seed", seed, "…")->check(kNotNegative);
#ifndef MC_CLI_NUMBERS_H_
#define MC_CLI_NUMBERS_H_

#include <cmath>
#include <sstream>
#include <string>

#include <CLI/CLI.hpp>

namespace mc::cli {

inline CLI::Validator number_check(bool takes_zero) {
  return {[takes_zero](const std::string& text) {
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) &&
                (takes_zero ? number >= 0 : number > 0))
              return std::string();
            return (takes_zero ? "a number from 0 on is needed, not "
                               : "a number above 0 is needed, not ") +
                   text;
          },
          takes_zero ? "NONNEGATIVE" : "POSITIVE"};
}

// A number from `least` to `most`, both included.
inline CLI::Validator number_range(double least, double most) {
  std::ostringstream range;
  range << least << " - " << most;
  return {[least, most](const std::string& text) {
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && least <= number && number <= most)
              return std::string();
            std::ostringstream said;
            said << "a number from " << least << " to " << most << " is needed, not " << text;
            return said.str();
          },
          "FLOAT in [" + range.str() + "]"};
}

inline const CLI::Validator kNotNegative = number_check(/*takes_zero=*/true);
inline const CLI::Validator kPositive = number_check(/*takes_zero=*/false);

}  // namespace mc::cli

#endif  // MC_CLI_NUMBERS_H_
