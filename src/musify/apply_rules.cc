// SPDX-License-Identifier: Apache-2.0
#include "musify/apply_rules.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "musify/python_flow.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Words = std::vector<Word>;

std::vector<std::string> split(std::string_view phrase) {
  std::vector<std::string> words;
  std::size_t start = 0;
  while (start <= phrase.size()) {
    const std::size_t end = std::min(phrase.find(' ', start), phrase.size());
    words.emplace_back(phrase.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

// True if the word is `text` in code, not in a string.
bool is_code(const Word& word, std::string_view text) {
  const std::string& meaning = word.module.empty() ? word.text : word.module;
  return word.kind != Kind::kString && word.kind != Kind::kHeader && word.is_editable &&
         meaning == text;
}

// True if the word is code that matches a pattern, which may end in *.
bool is_code_like(const Word& word, std::string_view pattern) {
  const bool is_prefix = pattern.size() > 1 && pattern.ends_with('*');
  return is_prefix ? is_code(word, word.text) && matches(pattern, word.text)
                   : is_code(word, pattern);
}

// The content of a string, with "{}" for each field of an f-string.
std::string without_fields(const Word& word) {
  std::string text = word.text;
  const std::vector<Field> fields = fields_of(word);
  for (auto field = fields.rbegin(); field != fields.rend(); ++field) {
    text.replace(field->open, field->close - field->open, "{}");
  }
  return text;
}

bool fits_next(Rule::Next next, std::string_view rest) {
  if (next == Rule::Next::kAny) return true;
  if (rest.empty()) return false;
  const auto c = static_cast<unsigned char>(rest.front());
  return next == Rule::Next::kCapital ? std::isupper(c) != 0 : std::islower(c) != 0;
}

// Applies the rules to one unit; a class, so that the helpers share their inputs.
class Applier {
 public:
  Applier(const Unit& unit, const Names& defined, const Names& files, const Rules& rules,
          Edits& edits)
      : unit_(unit),
        words_(unit.words),
        defined_(defined),
        files_(files),
        rules_(rules),
        edits_(edits) {}

  std::vector<Finding> apply() {
    for (const Rule& rule : rules_.rules) {
      const bool is_cpp = unit_.language == Language::kCpp;
      if (is_cpp ? rule.is_for_cpp : rule.is_for_python) apply(rule);
    }
    rename_own_files();
    return std::move(unknown_guards_);
  }

 private:
  void apply(const Rule& rule) {
    switch (rule.kind) {
      case Rule::Kind::kHeader:
      case Rule::Kind::kQuotedHeader:
        return for_words(Kind::kHeader, [&](const Word& word) { change_header(rule, word); });
      case Rule::Kind::kThreshold:
        return change_guards(rule);
      case Rule::Kind::kPhrase:
        return change_phrases(rule);
      case Rule::Kind::kPrefix:
        return for_words(Kind::kName, [&](const Word& word) { change_prefix(rule, word); });
      case Rule::Kind::kImport:
        return change_imports(rule);
      case Rule::Kind::kKeyword:
        return change_keywords(rule);
      case Rule::Kind::kDevice:
        return for_words(Kind::kString, [&](const Word& word) { change_device(rule, word); });
      case Rule::Kind::kString:
        return for_words(Kind::kString, [&](const Word& word) { change_string(rule, word); });
      case Rule::Kind::kFlag:
        return change_flags(rule);
    }
  }

  template <typename Function>
  void for_words(Kind kind, Function function) {
    for (const Word& word : words_) {
      if (word.kind == kind && word.is_editable) function(word);
    }
  }

  void replace(const Word& word, const std::string& replacement, const Rule& rule) {
    edits_.replace(word.offset, word.size, replacement, rule.id);
  }

  void change_header(const Rule& rule, const Word& word) {
    const auto found = std::ranges::find(rule.pairs, word.text, &Pair::from);
    if (found == rule.pairs.end() || word.content == 0) return;
    // The header is a file of the same run that has the name of a CUDA or MUSA header.
    if (files_.contains(word.text) && edits_.at(word.offset) != '<') return;
    if (rule.kind == Rule::Kind::kHeader) {
      edits_.replace(word.content, word.text.size(), found->to, rule.id);
    } else if (rules_.target == Target::kMusa) {
      replace(word, unit_.quote + found->to + unit_.quote, rule);
    } else {
      replace(word, "<" + found->to + ">", rule);
    }
  }

  // Changes the suffix of a file of the same run, in an #include or in a list of sources.
  void rename_own_files() {
    const bool is_cpp = unit_.language == Language::kCpp;
    for_words(is_cpp ? Kind::kHeader : Kind::kString, [&](const Word& word) {
      const std::string name = file_name(word.text);
      if (!files_.contains(name)) return;
      for (const Pair& suffix : rules_.suffixes) {
        if (!name.ends_with(suffix.from)) continue;
        edits_.replace(word.content + word.text.size() - suffix.from.size(), suffix.from.size(),
                       suffix.to, "own_file");
      }
    });
  }

  static bool is_comparison(const Word& word) {
    static const std::set<std::string> kComparisons = {">=", ">", "<", "<=", "==", "!="};
    return kComparisons.contains(word.text);
  }

  // The index of the number to which the macro at `i` is compared; words_.size() if there is none.
  std::size_t threshold_of(std::size_t i) const {
    if (i + 2 < words_.size() && is_comparison(words_[i + 1]) &&
        words_[i + 2].kind == Kind::kNumber) {
      return i + 2;
    }
    if (i >= 2 && is_comparison(words_[i - 1]) && words_[i - 2].kind == Kind::kNumber) return i - 2;
    return words_.size();
  }

  void change_guards(const Rule& rule) {
    if (defined_.contains(rule.macro.from)) return;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (!is_code(words_[i], rule.macro.from)) continue;
      const std::size_t number = threshold_of(i);
      if (number == words_.size()) continue;
      const auto found = std::ranges::find(rule.pairs, words_[number].text, &Pair::from);
      if (found != rule.pairs.end()) {
        replace(words_[number], found->to, rule);
      } else if (words_[number].text != "0" && !edits_.is_excluded(words_[i].offset)) {
        unknown_guards_.push_back({edits_.location_of(words_[i].offset),
                                   rule.macro.from + " is compared with " + words_[number].text +
                                       ", which has no known counterpart",
                                   rule.id});
      }
    }
  }

  bool fits(const std::vector<std::string>& phrase, std::size_t i) const {
    if (i + phrase.size() > words_.size()) return false;
    for (std::size_t k = 0; k < phrase.size(); ++k) {
      if (phrase[k] != "*" && !is_code_like(words_[i + k], phrase[k])) return false;
    }
    return true;
  }

  // The word before the qualified name to which the word at `i` belongs.
  std::string_view word_before_name(std::size_t i) const {
    while (i >= 2 && words_[i - 1].text == "::") i -= 2;
    return i > 0 ? std::string_view(words_[i - 1].text) : std::string_view();
  }

  static bool ends(const std::vector<std::string>& end, const std::vector<std::string>& whole) {
    return end.size() < whole.size() && std::equal(end.rbegin(), end.rend(), whole.rbegin());
  }

  void change_phrases(const Rule& rule) {
    for (const Pair& pair : rule.pairs) {
      const std::vector<std::string> from = split(pair.from);
      const std::vector<std::string> to = split(pair.to);
      for (std::size_t i = 0; i < words_.size(); ++i) {
        if (!fits(from, i) || rule.not_after.contains(std::string(word_before_name(i)))) continue;
        if (from.size() == 1 && defined_.contains(from[0])) continue;
        if (ends(from, to) && i + from.size() >= to.size() && fits(to, i + from.size() - to.size()))
          continue;  // The text already has the new name.
        change_phrase(rule, from, to, i);
      }
    }
  }

  void change_phrase(const Rule& rule, const std::vector<std::string>& from,
                     const std::vector<std::string>& to, std::size_t i) {
    if (from.size() == to.size()) return change_words(rule, from, to, i);
    MC_CHECK(!from.empty() && i + from.size() <= words_.size());
    std::string joined;
    for (const std::string& word : to) joined += word;
    const std::size_t begin = words_[i].offset;
    const std::size_t end = words_[i + from.size() - 1].end();
    if (edits_.text(begin, end).find_first_of("\"'") != std::string_view::npos) return;
    edits_.replace(begin, end - begin, joined, rule.id);
  }

  // Makes one edit from the first word that differs to the last, which keeps the white space
  // between the words.
  void change_words(const Rule& rule, const std::vector<std::string>& from,
                    const std::vector<std::string>& to, std::size_t i) {
    std::size_t first = 0;
    std::size_t last = from.size();
    while (first < last && from[first] == to[first]) ++first;
    while (last > first && from[last - 1] == to[last - 1]) --last;
    if (first == last) return;
    std::string changed;
    for (std::size_t k = first; k < last; ++k) {
      const Word& word = words_[i + k];
      changed += from[k] == to[k] ? edits_.text(word.offset, word.end()) : to[k];
      if (k + 1 < last) changed += edits_.text(word.end(), words_[i + k + 1].offset);
    }
    const std::size_t begin = words_[i + first].offset;
    edits_.replace(begin, words_[i + last - 1].end() - begin, changed, rule.id);
  }

  // The import binds the same name as before: `from torch import cuda` becomes `import musa as
  // cuda`.
  void change_imports(const Rule& rule) {
    for (std::size_t i = 0; i + 3 < words_.size(); ++i) {
      if (!is_code(words_[i], "from") || !is_code(words_[i + 1], "torch") ||
          !is_code(words_[i + 2], "import")) {
        continue;
      }
      for (i += 3; i < words_.size() && words_[i].kind != Kind::kNewline; ++i) {
        if (is_code(words_[i], ";")) break;
        for (const Pair& pair : rule.pairs) change_import(rule, pair, i);
      }
    }
  }

  void change_import(const Rule& rule, const Pair& pair, std::size_t i) {
    if (!is_code(words_[i], pair.from) || is_code(words_[i - 1], "as")) return;
    const bool has_alias = i + 2 < words_.size() && is_code(words_[i + 1], "as");
    if (!has_alias) {
      replace(words_[i], pair.to + " as " + pair.from, rule);
    } else if (words_[i + 2].text == pair.to) {
      const std::size_t begin = words_[i].offset;
      edits_.replace(begin, words_[i + 2].end() - begin, pair.to, rule.id);
    } else {
      replace(words_[i], pair.to, rule);
    }
  }

  void change_prefix(const Rule& rule, const Word& word) {
    if (defined_.contains(word.text)) return;
    for (const Pair& pair : rule.pairs) {
      if (!word.text.starts_with(pair.from)) continue;
      const std::string rest = word.text.substr(pair.from.size());
      if (fits_next(rule.next, rest)) return replace(word, pair.to + rest, rule);
    }
  }

  bool is_keyword_argument(std::size_t i) const {
    return words_[i].kind == Kind::kName && i > 0 && i + 1 < words_.size() &&
           is_code(words_[i + 1], "=") &&
           (is_code(words_[i - 1], "(") || is_code(words_[i - 1], ","));
  }

  // True for an item such as "cuda_sources": a, because a dict may be passed by **.
  bool is_keyword_item(std::size_t i) const {
    return words_[i].kind == Kind::kString && i + 1 < words_.size() && is_code(words_[i + 1], ":");
  }

  void change_keywords(const Rule& rule) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (words_[i].kind == Kind::kString) change_string(rule, words_[i]);
      if (!is_keyword_argument(i) && !is_keyword_item(i)) continue;
      const auto found = std::ranges::find(rule.pairs, words_[i].text, &Pair::from);
      if (found != rule.pairs.end()) replace(words_[i], found->to, rule);
      const bool is_plain =
          i + 3 < words_.size() && (is_code(words_[i + 3], ",") || is_code(words_[i + 3], ")") ||
                                    is_code(words_[i + 3], "}"));
      if (is_plain && std::ranges::find(rule.dropped, words_[i].text) != rule.dropped.end()) {
        drop(rule, i, i + 2);
      }
    }
  }

  void drop(const Rule& rule, std::size_t first, std::size_t last) {
    const Removal removal = removal_of(words_, first, last);
    if (edits_.replace(removal.begin, removal.end - removal.begin, "", rule.id)) return;
    // The comma before the item was already removed with another item.
    edits_.replace(words_[first].offset, words_[last].end() - words_[first].offset, "", rule.id);
  }

  void change_device(const Rule& rule, const Word& word) {
    const std::string text = without_fields(word);
    for (const Pair& pair : rule.pairs) {
      const bool is_device =
          text.starts_with(pair.from) &&
          (text.size() == pair.from.size() ||
           (text[pair.from.size()] == ':' && text.find_first_of(" \n") == std::string::npos &&
            text.find("::") == std::string::npos));
      if (is_device) edits_.replace(word.content, pair.from.size(), pair.to, rule.id);
    }
  }

  void change_string(const Rule& rule, const Word& word) {
    const auto found = std::ranges::find(rule.pairs, word.text, &Pair::from);
    if (found != rule.pairs.end()) {
      edits_.replace(word.content, word.text.size(), found->to, rule.id);
    }
  }

  void change_flags(const Rule& rule) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const Word& word = words_[i];
      if (word.kind != Kind::kString || !rule.keywords.contains(word.keyword)) continue;
      change_string(rule, word);
      const bool is_dropped = std::ranges::any_of(
          rule.dropped, [&](const std::string& pattern) { return matches(pattern, word.text); });
      if (is_dropped) drop(rule, i, i);
    }
  }

  const Unit& unit_;
  const Words& words_;
  const Names& defined_;
  const Names& files_;
  const Rules& rules_;
  Edits& edits_;
  std::vector<Finding> unknown_guards_;
};

}  // namespace

std::string file_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1);
}

Removal removal_of(const std::vector<Word>& words, std::size_t first, std::size_t last) {
  MC_CHECK(first <= last && last < words.size());
  const bool has_comma = last + 2 < words.size() && words[last + 1].text == ",";
  if (has_comma) return {words[first].offset, words[last + 2].offset};
  const bool follows_item = first > 1 && words[first - 1].text == ",";
  return {words[first - (follows_item ? 1 : 0)].offset, words[last].end()};
}

std::vector<Finding> apply_rules(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, Edits& edits) {
  return Applier(unit, defined, project_files, rules, edits).apply();
}

}  // namespace mc::musify
