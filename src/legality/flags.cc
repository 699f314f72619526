// SPDX-License-Identifier: Apache-2.0
#include "legality/flags.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "legality/static_rules.h"
#include "legality/symbols.h"

namespace mc::legality {
namespace {

using Strings = std::vector<std::string>;

constexpr std::size_t kQuotedBytesMax = 100;

// Appends the words of one item, split like in a shell; quotes hold a word together.
void append_words(const std::string& item, Strings& words) {
  std::string word;
  bool started = false;
  char quote = 0;
  for (const char c : item) {
    const bool space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      started = true;
    } else if (!space) {
      word += c;
      started = true;
    } else if (started) {
      words.push_back(std::exchange(word, ""));
      started = false;
    }
  }
  if (started) words.push_back(word);
}

// The flags with one item for each: "-gencode", "arch=..." becomes "-gencode=arch=...", "-D", "X"
// becomes "-DX".
Strings normal_form(const FlagRules& rules, const Strings& items) {
  Strings words;
  for (const std::string& item : items) append_words(item, words);
  Strings flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) continue;
    if (!rules.valued.contains(words[i]) || i + 1 == words.size()) {
      flags.push_back(words[i]);
      continue;
    }
    const bool is_letter = words[i].size() == 2;  // -D, -U, -I, -L, -l
    flags.push_back(words[i] + (is_letter ? "" : "=") + words[i + 1]);
    ++i;
  }
  return flags;
}

// An option that passes flags on, as in "-Xptxas=-v,-O3": the list for these flags, and the flags.
struct Nested {
  std::string option;
  const FlagList* list;
  Strings values;
};

std::optional<Nested> as_nested(const FlagRules& rules, const std::string& flag) {
  const std::size_t equals = flag.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const auto found = rules.nested.find(flag.substr(0, equals));
  if (found == rules.nested.end()) return std::nullopt;
  std::string values = flag.substr(equals + 1);
  std::ranges::replace(values, ',', ' ');
  return Nested{found->first, &rules.lists.at(found->second), normal_form(rules, {values})};
}

std::size_t bytes_of(const CompilerFlags& flags) {
  std::size_t bytes = 0;
  for (const Strings* list : {&flags.cxx, &flags.cuda, &flags.link}) {
    for (const std::string& item : *list) bytes += item.size() + 1;
  }
  return bytes;
}

class Checker {
 public:
  explicit Checker(const Policy& policy) : policy_(policy) {}

  // The items that pass; `argument` is the name of the list in the author's source.
  Strings pass(const Strings& items, const char* list, const char* argument) {
    const FlagRules& rules = policy_.flags;
    Strings passed;
    for (const std::string& flag : normal_form(rules, items)) {
      if (const auto nested = as_nested(rules, flag)) {
        std::string values;
        for (const std::string& value : nested->values) {
          if (!is_passed(*nested->list, value, argument)) continue;
          values += (values.empty() ? "" : ",") + value;
        }
        if (!values.empty()) passed.push_back(nested->option + "=" + values);
      } else if (is_passed(rules.lists.at(list), flag, argument)) {
        passed.push_back(flag);
      }
    }
    return passed;
  }

  std::vector<task::RuleFinding> take_findings() {
    if (findings_.size() > kFindingsMax) findings_.resize(kFindingsMax);
    return std::move(findings_);
  }

 private:
  bool is_passed(const FlagList& list, const std::string& flag, const char* argument) {
    if (!matches_any(flag, list.passed)) {
      if (matches_any(flag, list.dropped)) return false;
      findings_.push_back(
          {policy_.flags.id,
           flag.substr(0, kQuotedBytesMax) + " in " + argument + ": " + policy_.flags.message,
           {}});
      return false;
    }
    return !flag.starts_with("-D") || is_legal_definition(flag.substr(2), argument);
  }

  // -DNAME=text adds text to the program that no source contains.
  bool is_legal_definition(const std::string& definition, const char* argument) {
    const std::size_t equals = definition.find('=');
    if (equals == std::string::npos) return true;
    const std::string text = "return " + definition.substr(equals + 1) + ";\n";
    auto found = check_sources(policy_, {{argument, text}});
    const bool legal = found.empty();
    for (task::RuleFinding& finding : found) {
      findings_.push_back({std::move(finding.rule),
                           "-D" + definition.substr(0, kQuotedBytesMax) + ": " + finding.message,
                           {}});
    }
    return legal;
  }

  const Policy& policy_;
  std::vector<task::RuleFinding> findings_;
};

}  // namespace

CheckedFlags check_flags(const Policy& policy, const CompilerFlags& flags) {
  if (bytes_of(flags) > kFlagBytesMax) {
    return {{}, {{policy.flags.id, "the flags are too long: " + policy.flags.message, {}}}};
  }
  Checker checker(policy);
  CheckedFlags checked;
  checked.passed.cxx = checker.pass(flags.cxx, "cxx", "extra_cflags");
  checked.passed.cuda = checker.pass(flags.cuda, "cuda", "extra_cuda_cflags");
  checked.passed.link = checker.pass(flags.link, "link", "extra_ldflags");
  checked.findings = checker.take_findings();
  return checked;
}

}  // namespace mc::legality
