// SPDX-License-Identifier: Apache-2.0
#include "cli/suggest.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

namespace mc::cli {
namespace {

// A name at a larger distance is a different word, not a typing error; at most half of the word may
// be wrong.
constexpr size_t kDistanceMax = 2;

bool is_near(const std::string& word, const std::string& name) {
  const size_t distance = edit_distance(word, name);
  return distance <= kDistanceMax && 2 * distance <= word.size();
}

// The options of the given subcommand, without their dashes.
std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
    const std::vector<std::string> inner = options_of(*command);
    names.insert(names.end(), inner.begin(), inner.end());
  }
  return names;
}

// The command with its subcommands, as in "musacoder task check".
std::string command_of(const CLI::App& app, std::string program) {
  for (const CLI::App* command : app.get_subcommands()) {
    return command_of(*command, program + " " + command->get_name());
  }
  return program;
}

// The part of `text` after `mark`, or the whole text if it does not contain `mark`.
std::string behind(const std::string& text, const std::string& mark) {
  const size_t at = text.find(mark);
  return at == std::string::npos ? text : text.substr(at + mark.size());
}

std::string before(const std::string& text, const std::string& mark) {
  return text.substr(0, text.find(mark));
}

std::string message_of_values(const std::string& text) {
  const std::string name = before(text, ":");
  int wanted = 0;
  int got = 0;
  const std::string counts = behind(text, ": ");
  if (std::sscanf(counts.c_str(), "At least %d required but received %d", &wanted, &got) == 2) {
    return name + ": expected " + std::to_string(wanted) + " values, got " + std::to_string(got);
  }
  return name == text ? before(text, " was") + " takes no value" : name + ": expected a value";
}

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) {
  // The distances between the processed prefix of a and the prefixes of b.
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& names) {
  const auto found = std::ranges::min_element(
      names, {}, [&](const std::string& name) { return edit_distance(word, name); });
  return found != names.end() && is_near(word, *found) ? std::optional(*found) : std::nullopt;
}

std::optional<std::string> unknown_subcommand(const std::vector<std::string>& words,
                                              const std::vector<std::string>& names) {
  if (words.empty() || words[0].starts_with('-')) return std::nullopt;
  const std::string& word = words[0];
  if (std::ranges::find(names, word) != names.end()) return std::nullopt;
  auto meant = nearest(word, names);
  const auto begins_word = [&](const std::string& name) { return word.starts_with(name); };
  const auto begin = std::ranges::find_if(names, begins_word);
  if (!meant && begin != names.end()) meant = *begin;
  return "no subcommand " + word +
         (meant ? "; did you mean " + *meant + "?" : "; --help lists them");
}

std::optional<std::string> unknown_option(const std::vector<std::string>& words,
                                          const std::vector<std::string>& options) {
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (std::ranges::find(options, name) != options.end()) continue;
    if (const auto meant = nearest(name, options)) {
      return "did you mean --" + *meant + " in place of --" + name + "?";
    }
  }
  return std::nullopt;
}

std::string message_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string word = before(behind(text, ": "), " ");
    return (word.starts_with('-') ? "unknown option " : "unexpected argument ") + word;
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const std::string name = before(text, " is required");
    return (name == "A subcommand" ? "a subcommand" : name) + " is missing";
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return before(text, " excludes ") + " and " + behind(text, " excludes ") +
           " cannot be given together";
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    return before(text, " requires ") + " needs " + behind(text, " requires ");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return message_of_values(text);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr &&
      text.find(" = ") != text.npos) {
    return before(behind(text, ": "), " = ") + ": expected a number, got \"" + behind(text, " = ") +
           '"';
  }
  return text;
}

std::string advice_for(const CLI::ParseError& error, const CLI::App& app,
                       const std::string& program, const std::vector<std::string>& words) {
  const auto option = unknown_option(words, options_of(app));
  return message_of(error) + "; " +
         option.value_or(command_of(app, program) + " --help lists what there is");
}

}  // namespace mc::cli
