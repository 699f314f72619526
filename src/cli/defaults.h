// SPDX-License-Identifier: Apache-2.0
//
// The text of options in --help: the values that they take, as in "NUMBER=2" or "cuda|musa=cuda",
// and their defaults.  No default is shown for an empty list, or if the option's description
// contains it.
#ifndef MC_CLI_DEFAULTS_H_
#define MC_CLI_DEFAULTS_H_

#include <string>

#include <CLI/CLI.hpp>

namespace mc::cli {

// REQUIRES: no option has been added.
inline void show_defaults(CLI::App& app) { app.option_defaults()->always_capture_default(); }

// "NUMBER", "TEXT", or the list of allowed words.
inline std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // A type such as "INT" or "TEXT:cuda|musa".
  const size_t colon = type.find(':');
  if (colon != std::string::npos) return type.substr(colon + 1);
  const bool is_number = type == "INT" || type == "UINT" || type == "FLOAT";
  return is_number ? "NUMBER" : type;
}

// The text after the names of an option in --help.
inline std::string value_text(const CLI::Option& option) {
  std::string text = value_name(option);
  // If an option may be given without a value, its default text is the value that it then has.
  const bool is_described = option.get_description().find("default:") != std::string::npos;
  const std::string& value = option.get_default_str();
  const bool has_default = option.get_expected_min() == 0 || (!is_described && value != "[]");
  if (has_default && !value.empty()) text += "=" + value;
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  if (option.get_required()) text += " (needed)";
  return text.empty() ? " " : text;  // A space replaces the parser's own text for a flag.
}

// REQUIRES: all options of all subcommands have been added.
inline void describe_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) option->option_text(value_text(*option));
  for (CLI::App* command : app.get_subcommands({})) describe_values(*command);
}

}  // namespace mc::cli

#endif  // MC_CLI_DEFAULTS_H_
