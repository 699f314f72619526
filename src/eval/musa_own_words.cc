// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_own_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <vector>

#include "lex/edit.h"
#include "lex/token.h"
#include "musify/python_flow.h"
#include "musify/words.h"

namespace mc::eval {
namespace {

using Kind = musify::Word::Kind;
using Words = std::vector<musify::Word>;

constexpr std::string_view kMark = "foreign";
constexpr std::string_view kMarkOfCapitals = "FOREIGN";
constexpr std::size_t kWordSize = std::string_view("cuda").size();

bool is_name_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

char at(std::string_view text, std::size_t i) { return i < text.size() ? text[i] : ' '; }

// True where a name begins at `i`; it may follow the escape "\x02" in a Python literal.
bool begins_name(std::string_view text, std::size_t i) {
  if (i == 0 || !is_name_byte(text[i - 1])) return true;
  return i > 1 && text[i - 2] == '\\';
}

// True for `cuda` at the beginning of a name such as cudaMalloc or as a whole name, and for CUDA
// anywhere.
bool is_word_of_cuda(std::string_view text, std::size_t i) {
  if (text.substr(i, kWordSize) == "CUDA") return true;
  if (text.substr(i, kWordSize) != "cuda") return false;
  const auto next = static_cast<unsigned char>(at(text, i + kWordSize));
  const bool continues = std::islower(next) != 0 || std::isdigit(next) != 0 || next == '_';
  return begins_name(text, i) && !continues;
}

constexpr std::size_t kNameBytesMax = 256;  // The limit after which a name is cut.

std::string_view name_around(std::string_view text, std::size_t i) {
  std::size_t begin = i;
  std::size_t end = i;
  const std::size_t limit = std::min(text.size(), i + kNameBytesMax);
  while (begin > 0 && i - begin < kNameBytesMax && !begins_name(text, begin)) --begin;
  while (end < limit && is_name_byte(text[end])) ++end;
  return text.substr(begin, end - begin);
}

std::string_view mark_of(std::string_view text, std::size_t i) {
  return text[i] == 'C' ? kMarkOfCapitals : kMark;
}

template <typename IsOwn>
void add_marks(std::string_view text, std::size_t offset, IsOwn is_own,
               std::vector<lex::Edit>& edits) {
  for (std::size_t i = 0; i + kWordSize <= text.size(); ++i) {
    if (!is_word_of_cuda(text, i) || is_own(name_around(text, i))) continue;
    edits.push_back({offset + i, 0, std::string(mark_of(text, i))});
    i += kWordSize - 1;
  }
}

// Calls `function` for each literal, also for those in the braces of f-strings.
template <typename Function>
void for_literals(const Words& words, Function function) {
  for (const musify::Word& word : words) {
    if (word.kind != Kind::kString) continue;
    function(word);
    for (const musify::Field& field : musify::fields_of(word)) {
      for_literals(musify::words_of(word, field), function);
    }
  }
}

bool is_device(std::string_view text, std::string_view kind) {
  return text == kind || (text.starts_with(kind) && at(text, kind.size()) == ':');
}

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

bool opens(std::string_view text) { return text == "(" || text == "[" || text == "{"; }
bool closes(std::string_view text) { return text == ")" || text == "]" || text == "}"; }

// The function of the call that the word at `i` is an argument of, or "".
std::string_view callee_of(const Words& words, std::size_t i) {
  constexpr std::size_t kArgumentWordsMax = 64;
  std::size_t depth = 0;
  for (std::size_t k = i; k > 1 && i - k < kArgumentWordsMax; --k) {
    const musify::Word& word = words[k - 1];
    if (word.kind != Kind::kOther) continue;
    if (closes(word.text)) ++depth;
    if (!opens(word.text) || depth-- > 0) continue;
    return word.text == "(" ? std::string_view(words[k - 2].text) : std::string_view();
  }
  return "";
}

// True for a whole argument that can only be a device or a part of torch: device="cuda",
// x.to("cuda").
bool names_device(const Words& words, std::size_t i) {
  static constexpr std::array<std::string_view, 3> kKeywords = {"device", "device_type",
                                                                "map_location"};
  static constexpr std::array<std::string_view, 9> kCallees = {
      "device",       "to",         "Generator",        "autocast",
      "getattr",      "attrgetter", "__getattribute__", "set_default_device",
      "import_module"};
  if (i < 2) return false;
  const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1].text) : "";
  const std::string_view before = words[i - 1].text;
  if (next != "," && next != ")") return false;
  if (before == "=") return is_one_of(kKeywords, words[i - 2].text);
  return (before == "(" || before == ",") && is_one_of(kCallees, callee_of(words, i));
}

// True for the name in getattr(x, "is_cuda") or attrgetter("cuda.synchronize").
bool names_attribute(const Words& words, std::size_t i) {
  static constexpr std::array<std::string_view, 4> kCallees = {"getattr", "attrgetter",
                                                               "methodcaller", "__getattribute__"};
  const std::string& text = words[i].text;
  const bool is_of_cuda = text == "is_cuda" || text.starts_with("cuda.") ||
                          text.starts_with("torch.cuda.") || text == "cuda";
  return is_of_cuda && is_one_of(kCallees, callee_of(words, i));
}

// The use that C++ makes of a string.
enum class Use : std::uint8_t { kAny, kData, kName };

Use use_of(std::string_view source, const std::vector<lex::Token>& tokens, std::size_t i) {
  static constexpr std::array<std::string_view, 8> kMessages = {
      "AT_ERROR",      "printf",           "fprintf",     "puts",
      "runtime_error", "invalid_argument", "logic_error", "TORCH_WARN"};
  const auto text = [&](std::size_t k) { return lex::text_of(source, tokens[k]); };
  if (i < 2 || tokens[i].in_directive) return Use::kAny;
  const std::string_view before = text(i - 1);
  const std::string_view next = i + 1 < tokens.size() ? text(i + 1) : "";
  if (before == "==" || before == "!=" || next == "==" || next == "!=") return Use::kData;
  if (before == "<<") return Use::kData;
  if (before != "(" && before != ",") return Use::kAny;
  constexpr std::size_t kArgumentTokensMax = 64;
  std::size_t depth = 0;
  for (std::size_t k = i; k > 1 && i - k < kArgumentTokensMax; --k) {
    if (closes(text(k - 1))) ++depth;
    if (!opens(text(k - 1)) || depth-- > 0) continue;
    const std::string_view callee = text(k - 2);
    if (callee == "def" || callee == "attr") return Use::kName;
    const bool is_message = callee.starts_with("TORCH_CHECK") || is_one_of(kMessages, callee);
    return is_message ? Use::kData : Use::kAny;
  }
  return Use::kAny;
}

template <typename Function>
void for_strings(std::string_view source, Function function) {
  std::vector<lex::Token> tokens = lex::tokenize(source);
  std::erase_if(tokens, lex::is_trivia);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == lex::Kind::kString) function(tokens[i], use_of(source, tokens, i));
  }
}

bool fits(const Words& words, std::size_t i, std::string_view text) {
  return i < words.size() && words[i].kind != Kind::kString && words[i].text == text;
}

constexpr std::array<std::string_view, 7> kIsAvailable = {"torch",        ".", "cuda", ".",
                                                          "is_available", "(", ")"};

bool tests_availability(const Words& words, std::size_t i) {
  if (i > 0 && fits(words, i - 1, ".")) return false;
  for (std::size_t k = 0; k < kIsAvailable.size(); ++k) {
    if (!fits(words, i + k, kIsAvailable[k])) return false;
  }
  return true;
}

// True for `name = torch_musa.utils.musa_extension.load_inline(` at `i`.
bool binds_extension(const Words& words, std::size_t i) {
  if (words[i].kind != Kind::kName || !fits(words, i + 1, "=")) return false;
  std::size_t last = i + 2;
  while (fits(words, last + 1, ".")) last += 2;
  return (fits(words, last, "load_inline") || fits(words, last, "load")) &&
         fits(words, last + 1, "(");
}

// True where a stand-in's mark precedes the word at `i`.
bool is_marked(std::string_view text, std::size_t i) {
  if (i < kMark.size()) return false;
  const std::string_view before = text.substr(i - kMark.size(), kMark.size());
  return std::ranges::equal(before, kMark, {}, [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
}

bool is_any_cuda(std::string_view text, std::size_t i) {
  const std::string_view word = text.substr(i, kWordSize);
  return word == "cuda" || word == "CUDA";
}

}  // namespace

OwnWords::OwnWords(std::string_view module) : module_(module) {
  const Words words = musify::python_words(module);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const bool holds_cuda = text.find("cuda") != text.npos || text.find("CUDA") != text.npos;
    const bool is_alone = text == "cuda" || text == "CUDA";
    if (words[i].kind == Kind::kName && holds_cuda && !is_alone) names_.insert(text);
    if (tests_availability(words, i)) allowed_.insert(words[i + 2].offset);
    if (words[i].kind != Kind::kString) continue;
    if (names_attribute(words, i)) attributes_[words[i].content] = text;
    if (is_device(text, "cuda") && !names_device(words, i)) allowed_.insert(words[i].content);
  }
  std::set<std::string_view> extensions;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (binds_extension(words, i)) extensions.insert(words[i].text);
    const bool is_own_function = i > 1 && fits(words, i, "cuda") && fits(words, i - 1, ".") &&
                                 extensions.contains(words[i - 2].text);
    if (is_own_function) allowed_.insert(words[i].offset);
  }
  for_literals(words, [&](const musify::Word& word) {
    if (is_device(word.text, "musa")) has_device_ = true;
    if (word.text == "PrivateUse1") has_dispatch_key_ = true;
  });
}

std::string OwnWords::with_stand_ins() const {
  const Words words = musify::python_words(module_);
  std::vector<lex::Edit> edits;
  const auto is_own = [&](std::string_view name) { return names_.contains(name); };
  for_literals(words, [&](const musify::Word& word) {
    if (word.text.starts_with('-')) return;  // A flag of a compiler or of the command line.
    std::size_t begin = 0;
    for (const musify::Field& field : musify::fields_of(word)) {
      const std::string_view piece(word.text);
      add_marks(piece.substr(begin, field.open - begin), word.content + begin, is_own, edits);
      begin = field.close;
    }
    add_marks(std::string_view(word.text).substr(begin), word.content + begin, is_own, edits);
  });
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!tests_availability(words, i)) continue;
    const std::size_t begin = words[i].offset;
    const std::size_t end = words[i + kIsAvailable.size() - 1].end();
    const auto lines = std::ranges::count(module_.substr(begin, end - begin), '\n');
    edits.push_back({begin, end - begin, "False"});
    if (lines > 0) edits.back().replacement.append(static_cast<std::size_t>(lines), '\n');
  }
  return lex::apply_edits(module_, std::move(edits));
}

std::string OwnWords::as_written(std::string_view source) const {
  std::vector<lex::Edit> edits;
  for (std::size_t i = 0; i + kWordSize <= source.size(); ++i) {
    if (!is_any_cuda(source, i)) continue;
    if (is_marked(source, i)) {
      edits.push_back({i - kMark.size(), kMark.size(), ""});
      continue;
    }
    const std::string_view name = name_around(source, i);
    if (!is_word_of_cuda(source, i) || names_.contains(name)) continue;
    if (name == "CUDA" && has_dispatch_key_) {
      edits.push_back({i, kWordSize, "PrivateUse1"});
    } else if (has_device_) {
      edits.push_back({i, kWordSize, source[i] == 'C' ? "MUSA" : "musa"});
    }
  }
  return lex::apply_edits(source, std::move(edits));
}

std::set<std::size_t> allowed_in(std::string_view source) {
  std::set<std::size_t> allowed;
  for_strings(source, [&](const lex::Token& token, Use use) {
    if (use != Use::kAny) allowed.insert(token.offset + 1);
  });
  return allowed;
}

std::string with_stand_ins_in(std::string_view source) {
  std::vector<lex::Edit> edits;
  for_strings(source, [&](const lex::Token& token, Use use) {
    const std::string_view text = lex::text_of(source, token);
    const bool is_sentence = text.find(' ') != text.npos && text.find("->") == text.npos;
    if (use != Use::kData && !is_sentence) return;
    add_marks(text, token.offset, [](std::string_view) { return false; }, edits);
  });
  return lex::apply_edits(source, std::move(edits));
}

std::string without_stand_ins(std::string_view text) {
  std::vector<lex::Edit> edits;
  for (std::size_t i = 0; i + kWordSize <= text.size(); ++i) {
    if (is_any_cuda(text, i) && is_marked(text, i)) {
      edits.push_back({i - kMark.size(), kMark.size(), ""});
    }
  }
  return lex::apply_edits(text, std::move(edits));
}

}  // namespace mc::eval
