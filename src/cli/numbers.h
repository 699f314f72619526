// SPDX-License-Identifier: Apache-2.0
//
// Checks of option values.  The messages contain the expected and the given value.  They are used
// instead of the ranges of CLI11, which accept nan.
// Example:
//   command.add_option("--seed", seed, "…")->check(kNotNegative);
#ifndef MC_CLI_NUMBERS_H_
#define MC_CLI_NUMBERS_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/check.h"
#include "core/file.h"

namespace mc::cli {

inline std::string expected_message(const std::string& expected, const std::string& got) {
  return "expected " + expected + ", got \"" + got + "\"";
}

inline CLI::Validator number_check(bool takes_zero) {
  return {[takes_zero](const std::string& text) {
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && std::isfinite(number) &&
                (takes_zero ? number >= 0 : number > 0))
              return std::string();
            return expected_message(takes_zero ? "a number from 0 on" : "a number above 0", text);
          },
          ""};
}

// Accepts a number from `least` to `most`, inclusive.
inline CLI::Validator number_range(double least, double most) {
  return {[least, most](const std::string& text) {
            double number = 0;
            if (CLI::detail::lexical_cast(text, number) && least <= number && number <= most)
              return std::string();
            std::ostringstream expected;
            expected << "a number from " << least << " to " << most;
            return expected_message(expected.str(), text);
          },
          ""};
}

// Accepts an integer from `least` to `most`, inclusive.
inline CLI::Validator whole_range(int64_t least, int64_t most) {
  return {[least, most](const std::string& text) {
            int64_t number = 0;
            if (CLI::detail::lexical_cast(text, number) && least <= number && number <= most)
              return std::string();
            return expected_message(
                "a whole number from " + std::to_string(least) + " to " + std::to_string(most),
                text);
          },
          ""};
}

// Accepts one of these words, which --help lists.
inline CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](const std::string& text) {
            if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
            std::string expected = words.front();
            for (size_t i = 1; i < words.size(); ++i) {
              expected += (i + 1 < words.size() ? ", " : " or ") + words[i];
            }
            return expected_message(expected, text);
          },
          CLI::detail::join(words, "|")};
}

// Adds an option that takes one of some words, each of which stands for a value.  REQUIRES: `value`
// is one of these values; it is the default.
template <typename T>
CLI::Option* add_choice(CLI::App& command, const std::string& name, T& value,
                        const std::vector<std::pair<std::string, std::type_identity_t<T>>>& choices,
                        const std::string& description) {
  std::vector<std::string> words;
  std::string present;
  for (const auto& [word, meaning] : choices) {
    words.push_back(word);
    if (meaning == value) present = word;
  }
  MC_CHECK(!present.empty());
  const auto set = [&value, choices](const std::string& given) {
    for (const auto& [word, meaning] : choices) {
      if (word == given) value = meaning;
    }
  };
  return command.add_option_function<std::string>(name, set, description)
      ->check(one_of(words))
      ->default_str(present);
}

// Accepts a number of bytes with a unit, such as 4GiB; kB and KiB are 1024 bytes.  The minimum is
// `least`, and `least_name` is its text in messages.
inline CLI::Validator byte_size(uint64_t least, const std::string& least_name) {
  return {[least, least_name](std::string& text) {
            const std::string expected = "a size of " + least_name + " or more, such as 4GiB";
            std::string bytes = text;
            uint64_t number = 0;
            try {
              const CLI::AsSizeValue read(/*kb_is_1000=*/false);
              if (!read(bytes).empty() || !CLI::detail::lexical_cast(bytes, number)) number = 0;
            } catch (const CLI::Error&) {
              number = 0;
            }
            if (number < least || number > static_cast<uint64_t>(INT64_MAX)) {
              return expected_message(expected, text);
            }
            text = bytes;
            return std::string();
          },
          ""};
}

// Accepts the path of a file or folder that can be written, so that an error is found before any
// work.
inline const CLI::Validator kOutputFile = {[](const std::string& path) {
                                             const Status fit = check_output(path);
                                             return fit ? std::string() : fit.error().message;
                                           },
                                           ""};
inline const CLI::Validator kOutputFolder = {[](const std::string& path) {
                                               const Status fit = check_output_folder(path);
                                               return fit ? std::string() : fit.error().message;
                                             },
                                             ""};

inline const CLI::Validator kNotNegative = number_check(/*takes_zero=*/true);
inline const CLI::Validator kPositive = number_check(/*takes_zero=*/false);

}  // namespace mc::cli

#endif  // MC_CLI_NUMBERS_H_
