// SPDX-License-Identifier: Apache-2.0
//
// A binding is a position that gives values to names: an assignment, an argument, a loop, a
// `return`. The names that reach a source are found by following bindings backwards until no new
// name is found.
#include "musify/python_flow.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Words = std::vector<Word>;
using Names = std::set<std::string, std::less<>>;

bool ends_statement(const Words& words, std::size_t i) {
  return ends_line(words, i) || is_mark(words, i, ";");
}

enum class Comma : std::uint8_t { kEnds, kIsPart };

// Limits on the time for meaningless text.
constexpr std::size_t kStepsMax = std::size_t{1} << 22;
constexpr std::size_t kRoundsMax = 64;
constexpr std::size_t kLoopWordsMax = 32;

// The end of the expression at `i`.
std::size_t end_of_value(const Words& words, std::size_t i, Comma comma) {
  std::size_t depth = 0;
  for (; i < words.size(); ++i) {
    if (opens_bracket(words, i)) ++depth;
    if (closes_bracket(words, i) && depth-- == 0) return i;
    if (depth > 0) continue;
    if (ends_statement(words, i) || (comma == Comma::kEnds && is_mark(words, i, ","))) return i;
  }
  return i;
}

// ---- Bindings -----------------------------------------------------------------------------------

struct Binding {
  Names targets;
  std::size_t begin = 0;  // The first word of the value.
  std::size_t end = 0;
};

struct Function {
  std::string name;
  std::vector<std::string> parameters;
};

class Bindings {
 public:
  explicit Bindings(const Words& words) : words_(words) {}

  std::vector<Binding> find() {
    functions_.push_back({"load_inline", {"name", "cpp_sources", "cuda_sources"}});
    for (std::size_t i = 0; i < words_.size(); ++i) add_definition(i);
    std::size_t depth = 0;
    std::size_t statement = 0;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      if (opens_bracket(words_, i)) ++depth;
      if (closes_bracket(words_, i) && depth > 0) --depth;
      if (depth == 0 && ends_statement(words_, i)) statement = i + 1;
      if (is_name(words_, i, "def") && i + 1 < words_.size()) function_ = words_[i + 1].text;
      add_assignment(i, statement, depth);
      add_item(i);
      add_loop(i);
      add_result(i);
      add_call(i);
    }
    return std::move(bindings_);
  }

  // The end of the call at `i`, if its arguments have their own bindings; else `i`.
  std::size_t end_of_own_call(std::size_t i) const {
    if (words_[i].kind != Kind::kName || !is_mark(words_, i + 1, "(")) return i;
    const bool has_parameters = std::ranges::any_of(functions_, [&](const Function& function) {
      return function.name == words_[i].text && !function.parameters.empty();
    });
    return has_parameters ? end_of_value(words_, i + 2, Comma::kIsPart) : i;
  }

 private:
  void add(Names targets, std::size_t begin, Comma comma) {
    if (steps_ > kStepsMax) return;
    const std::size_t end = std::max(begin, end_of_value(words_, begin, comma));
    steps_ += end - begin;
    bindings_.push_back({std::move(targets), begin, end});
  }

  // Adds the bindings of `a = v`, `self.a += v`, `a: str = v`, `f(a=v)` and `a := v`.
  void add_assignment(std::size_t i, std::size_t statement, std::size_t depth) {
    if (i == 0 || steps_ > kStepsMax) return;
    if (!is_mark(words_, i, "=") && !is_mark(words_, i, "+=") && !is_mark(words_, i, ":=")) return;
    if (depth > 0) return add({words_[i - 1].text}, i + 1, Comma::kEnds);
    steps_ += i - statement;
    Names targets;
    for (std::size_t k = statement; k < i && !is_mark(words_, k, ":"); ++k) {
      const bool is_value = words_[k].kind == Kind::kName || words_[k].kind == Kind::kString;
      if (is_value && !is_mark(words_, k + 1, ".")) targets.insert(words_[k].text);
    }
    if (is_mark(words_, i - 1, ":")) return;
    targets.insert(words_[i - 1].text);
    add(std::move(targets), i + 1, Comma::kIsPart);
  }

  // `"a": v`
  void add_item(std::size_t i) {
    if (words_[i].kind != Kind::kString || !is_mark(words_, i + 1, ":")) return;
    add({words_[i].text}, i + 2, Comma::kEnds);
  }

  // Adds the bindings of `for a, b in v`.
  void add_loop(std::size_t i) {
    if (!is_name(words_, i, "for")) return;
    Names targets;
    std::size_t in = i + 1;
    const std::size_t limit = std::min(words_.size(), i + kLoopWordsMax);
    for (; in < limit && !is_name(words_, in, "in"); ++in) targets.insert(words_[in].text);
    add(std::move(targets), in + 1, Comma::kIsPart);
  }

  void add_result(std::size_t i) {
    if (is_name(words_, i, "return") || is_name(words_, i, "yield")) {
      add({function_}, i + 1, Comma::kIsPart);
    }
  }

  // Adds functions with their parameters, and classes with those of __init__ or with their fields.
  void add_definition(std::size_t i) {
    if (i + 1 >= words_.size()) return;
    if (is_name(words_, i, "class")) {
      functions_.push_back({words_[i + 1].text, {}});
      class_ = functions_.size() - 1;
      return;
    }
    const bool begins_statement = i > 0 && ends_statement(words_, i - 1);
    if (begins_statement && class_ > 0 && words_[i].kind == Kind::kName &&
        is_mark(words_, i + 1, ":")) {
      functions_[class_].parameters.push_back(words_[i].text);
    }
    if (!is_name(words_, i, "def")) return;
    const bool is_constructor = is_name(words_, i + 1, "__init__") && class_ > 0;
    functions_.push_back(
        {is_constructor ? functions_[class_].name : words_[i + 1].text, parameters_at(i + 2)});
  }

  std::vector<std::string> parameters_at(std::size_t open) {
    std::vector<std::string> parameters;
    for (const std::size_t i : items_of(open)) {
      if (words_[i].kind != Kind::kName) break;  // `*` and `/`.
      if (words_[i].text != "self" && words_[i].text != "cls") {
        parameters.push_back(words_[i].text);
      }
    }
    return parameters;
  }

  // The first words of the comma-separated items in the bracket at `open`.
  std::vector<std::size_t> items_of(std::size_t open) {
    std::vector<std::size_t> items;
    if (!is_mark(words_, open, "(")) return items;
    std::size_t i = open + 1;
    while (i < words_.size() && !closes_bracket(words_, i)) {
      items.push_back(i);
      i = end_of_value(words_, i, Comma::kEnds);
      steps_ += i - items.back();
      if (!is_mark(words_, i, ",")) break;
      ++i;
    }
    return items;
  }

  // Binds the arguments of `f(v, w)` to the parameters of f by their order.
  void add_call(std::size_t i) {
    if (words_[i].kind != Kind::kName || !is_mark(words_, i + 1, "(")) return;
    if (i > 0 && (is_name(words_, i - 1, "def") || is_name(words_, i - 1, "class"))) return;
    const bool is_known = std::ranges::any_of(
        functions_, [&](const Function& function) { return function.name == words_[i].text; });
    if (!is_known || steps_ > kStepsMax) return;
    const std::vector<std::size_t> items = items_of(i + 1);
    for (const Function& function : functions_) {
      if (function.name != words_[i].text) continue;
      for (std::size_t k = 0; k < std::min(items.size(), function.parameters.size()); ++k) {
        if (is_mark(words_, items[k], "*") || is_mark(words_, items[k] + 1, "=")) break;
        add({function.parameters[k]}, items[k], Comma::kEnds);
      }
    }
  }

  const Words& words_;
  std::vector<Function> functions_;
  std::size_t class_ = 0;  // The class that was defined last, or 0.
  std::string function_;   // The function that was defined last.
  std::size_t steps_ = 0;
  std::vector<Binding> bindings_;
};

void add_names(const Word& word, Names& names) {
  if (word.kind == Kind::kName) names.insert(word.text);
  for (const Field& field : fields_of(word)) {
    for (const Word& inner : words_of(word, field)) add_names(inner, names);
  }
}

}  // namespace

// ---- Fields -------------------------------------------------------------------------------------

namespace {

// The end of the expression that begins at `i`: before a brace, a conversion or a format.
std::size_t end_of_expression(std::string_view text, std::size_t i) {
  std::size_t depth = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = text.find(c, i + 1);
      if (i == std::string_view::npos) return text.size();
    }
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (depth > 0 && (c == ')' || c == ']' || c == '}')) {
      --depth;
      continue;
    }
    if (depth > 0) continue;
    const bool is_conversion = c == '!' && text.substr(i + 1, 1) != "=";
    if (c == '}' || c == ':' || is_conversion) return i;
  }
  return text.size();
}

// The byte after the brace that ends a format, which may contain fields.
std::size_t end_of_field(std::string_view text, std::size_t i) {
  std::size_t depth = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && depth-- == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

std::vector<Field> fields_of(const Word& literal) {
  std::vector<Field> fields;
  if (literal.kind != Kind::kString) return fields;
  if (literal.python_prefix.find_first_of("fF") == std::string::npos) return fields;
  const std::string_view text = literal.text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    if (text.substr(i, 2) == "{{") {
      ++i;
      continue;
    }
    const std::size_t expression = end_of_expression(text, i + 1);
    const std::size_t close = end_of_field(text, expression);
    fields.push_back({i, expression, close});
    i = close - 1;
  }
  return fields;
}

std::vector<Word> words_of(const Word& literal, const Field& field) {
  const std::size_t begin = field.open + 1;
  Words words =
      python_words(std::string_view(literal.text).substr(begin, field.expression - begin));
  for (Word& word : words) {
    word.offset += literal.content + begin;
    word.content += literal.content + begin;
  }
  return words;
}

// ---- Modules ------------------------------------------------------------------------------------

namespace {

bool is_module(std::string_view name) { return name == "torch" || name == "torch_musa"; }

// The aliases of modules in one unit.
void add_aliases(const Words& words, std::map<std::string, std::string>& aliases) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i].kind != Kind::kName) continue;
    const bool is_import = is_module(words[i].text) && is_name(words, i + 1, "as") && i > 0 &&
                           !is_mark(words, i - 1, ".");
    if (is_import) aliases[words[i + 2].text] = words[i].text;
    const bool is_assigned =
        is_mark(words, i + 1, "=") && is_module(words[i + 2].text) && ends_statement(words, i + 3);
    if (is_assigned) aliases[words[i].text] = words[i + 2].text;
  }
}

}  // namespace

void set_modules(std::vector<Unit>& units) {
  std::map<std::string, std::string> aliases;
  for (const Unit& unit : units) {
    if (unit.language == Language::kPython) add_aliases(unit.words, aliases);
  }
  if (aliases.empty()) return;
  for (Unit& unit : units) {
    if (unit.language != Language::kPython) continue;
    for (std::size_t i = 0; i < unit.words.size(); ++i) {
      Word& word = unit.words[i];
      const auto found = aliases.find(word.text);
      const bool is_alias = word.kind == Kind::kName && found != aliases.end() &&
                            is_mark(unit.words, i + 1, ".") &&
                            (i == 0 || !is_mark(unit.words, i - 1, "."));
      if (is_alias && !is_module(word.text)) word.module = found->second;
    }
  }
}

std::vector<bool> reaching_sources(const std::vector<Word>& words) {
  Bindings found(words);
  const std::vector<Binding> bindings = found.find();
  Names names;
  for (const Binding& binding : bindings) {
    for (const std::string& target : binding.targets) {
      if (target.ends_with("_sources")) names.insert(target);
    }
  }
  std::vector<bool> reaches(words.size());
  std::vector<bool> is_done(bindings.size());
  bool is_new = !names.empty();
  for (std::size_t round = 0; is_new && round < kRoundsMax; ++round) {
    is_new = false;
    for (std::size_t b = 0; b < bindings.size(); ++b) {
      const Binding& binding = bindings[b];
      const bool is_reached = std::ranges::any_of(
          binding.targets, [&](const std::string& target) { return names.contains(target); });
      if (is_done[b] || !is_reached) continue;
      is_done[b] = is_new = true;
      MC_CHECK(binding.end <= words.size() || binding.begin == binding.end);
      for (std::size_t i = binding.begin; i < binding.end; ++i) {
        reaches[i] = true;
        add_names(words[i], names);
        i = found.end_of_own_call(i);
      }
    }
  }
  return reaches;
}

}  // namespace mc::musify
