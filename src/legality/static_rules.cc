// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  First, all sources are scanned for their own definitions: functions with a
// body, classes, macros, variables initialised with a lambda.  Then each token is tested against
// the rules, by its kind and its neighbours.  PyTorch operators are recognised after torch:: or
// at::, after a known tensor, and before a known tensor as an argument.
#include "legality/static_rules.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"
#include "legality/tensor_names.h"
#include "lex/code.h"

namespace mc::legality {
namespace {

constexpr std::size_t kExcerptBytesMax = 160;

struct View {
  const NativeSource& file;
  const lex::Code& code;

  std::string_view source() const { return file.text; }
  std::string_view text(std::size_t i) const { return lex::text_at(source(), code, i); }
  bool is_word(std::size_t i) const {
    return i < code.tokens.size() && code.tokens[i].kind == lex::Kind::kIdentifier;
  }
};

// ---- Definitions in the sources -----------------------------------------------------------------

bool is_type_word(const View& view, std::size_t i) {
  return view.text(i) == "struct" || view.text(i) == "class" || view.text(i) == "enum" ||
         view.text(i) == "using" || view.text(i) == "namespace";
}

// True if the token at `i` can be the last one of a type before a function's name.
bool ends_type(const View& view, std::size_t i) {
  const std::string_view text = view.text(i);
  return text == "void" || text == "auto" || text == "const" ||
         (view.is_word(i) && !lex::is_statement_keyword(text));
}

// True for: type name(...) [const | noexcept | override] {
bool is_function_definition(const View& view, std::size_t i) {
  if (view.text(i + 1) != "(" || view.code.partners[i + 1] == lex::kNone || i == 0) return false;
  const std::string_view before = view.text(i - 1);
  const bool has_type = ends_type(view, i - 1) || before == "*" || before == "&" || before == ">";
  std::size_t next = view.code.partners[i + 1] + 1;
  while (view.text(next) == "const" || view.text(next) == "noexcept" ||
         view.text(next) == "override") {
    ++next;
  }
  return has_type && view.text(next) == "{";
}

bool is_lambda_definition(const View& view, std::size_t i) {
  return view.text(i + 1) == "=" && view.text(i + 2) == "[";
}

bool is_macro_definition(const View& view, std::size_t i) {
  return view.code.is_directive && i == 2 && view.text(1) == "define";
}

void note_definitions(const View& view, Words& defined) {
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    if (!view.is_word(i)) continue;
    const bool is_type = i > 0 && is_type_word(view, i - 1);
    if (is_type || is_function_definition(view, i) || is_lambda_definition(view, i) ||
        is_macro_definition(view, i)) {
      defined.emplace(view.text(i));
    }
  }
}

// ---- Tests of a token ---------------------------------------------------------------------------

bool is_member(const View& view, std::size_t i) {
  return i > 0 && (view.text(i - 1) == "." || view.text(i - 1) == "->");
}

// True if the name at `i` has no qualifier, or only `::` or `std::`.
bool is_global(const View& view, std::size_t i) {
  if (i == 0 || view.text(i - 1) != "::") return true;
  return i == 1 || !view.is_word(i - 2) || view.text(i - 2) == "std" ||
         lex::is_statement_keyword(view.text(i - 2));
}

bool is_qualified(const View& view, std::size_t i) { return i > 0 && view.text(i - 1) == "::"; }

// True for a declaration such as `int system(const char*);`; its calls are found separately.
bool is_declaration(const View& view, std::size_t i) { return i > 0 && ends_type(view, i - 1); }

bool is_forbidden_call(const View& view, std::size_t i, const Words& calls, const Words& defined) {
  if (!calls.contains(view.text(i)) || is_member(view, i) || !is_global(view, i)) return false;
  if (defined.contains(view.text(i)) && !is_qualified(view, i)) return false;
  return view.text(i + 1) == "(" && !is_declaration(view, i);
}

bool has_prefix(std::string_view word, const Words& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const std::string& prefix) {
    if (word.substr(0, prefix.size()) != prefix || word.size() == prefix.size()) return false;
    const char next = word[prefix.size()];
    return (next >= 'A' && next <= 'Z') || prefix.back() == '_';
  });
}

// The qualified name that starts at `i`, where `i` itself has no qualifier: at::native::add.
std::string qualified_name(const View& view, std::size_t i) {
  constexpr std::size_t kPartsMax = 8;
  const bool is_inner = is_qualified(view, i) && i > 1 && view.is_word(i - 2);
  if (is_inner || is_member(view, i)) return "";
  std::string name(view.text(i));
  for (std::size_t part = 0; part < kPartsMax && view.text(i + 1) == "::"; ++part) {
    if (!view.is_word(i + 2)) break;
    i += 2;
    name.append("::").append(view.text(i));
  }
  return name;
}

bool has_scope(const View& view, std::size_t i, const Words& scopes) {
  if (scopes.empty() || view.text(i + 1) != "::") return false;
  const std::string name = qualified_name(view, i) + "::";
  return std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
    return name.compare(0, scope.size() + 2, scope + "::") == 0;
  });
}

// The names relu, relu_ and relu_out are one operator.
bool is_operator(std::string_view name, const Words& operators) {
  if (operators.contains(name)) return true;
  if (name.size() > 1 && name.back() == '_')
    return operators.contains(name.substr(0, name.size() - 1));
  constexpr std::string_view kOut = "_out";
  return name.size() > kOut.size() && name.substr(name.size() - kOut.size()) == kOut &&
         operators.contains(name.substr(0, name.size() - kOut.size()));
}

// True for torch::relu or at::relu, with `i` at `relu`.
bool is_qualified_operator(const View& view, std::size_t i, const Words& operators) {
  if (i < 2 || view.text(i - 1) != "::" || view.text(i + 1) == "::") return false;
  const bool is_torch = view.text(i - 2) == "torch" || view.text(i - 2) == "at";
  const bool is_outermost = i < 4 || view.text(i - 3) != "::" || !view.is_word(i - 4) ||
                            lex::is_statement_keyword(view.text(i - 4));
  return is_torch && is_outermost && is_operator(view.text(i), operators);
}

// True for relu(x) with a tensor x, where argument-dependent lookup finds at::relu.
bool is_operator_on_tensor(const View& view, std::size_t i, const Words& operators,
                           const Words& tensors, const Words& defined) {
  if (is_member(view, i) || is_qualified(view, i) || defined.contains(view.text(i))) return false;
  return is_operator(view.text(i), operators) && view.text(i + 1) == "(" &&
         !is_declaration(view, i) && tensors.contains(view.text(i + 2));
}

// ---- Collecting ---------------------------------------------------------------------------------

std::string excerpt_of(const View& view, const lex::Token& token) {
  const std::string_view text = view.source();
  const std::size_t start = token.offset - (token.column - 1);
  const std::size_t end = std::min(text.find('\n', start), text.size());
  std::string_view line = text.substr(start, std::min(end - start, kExcerptBytesMax));
  const std::size_t first = std::min(line.find_first_not_of(" \t"), line.size());
  line.remove_prefix(first);
  return std::string(line.substr(0, first_invalid_utf8(line)));
}

class Checker {
 public:
  Checker(const Policy& policy, const Words& defined) : policy_(policy), defined_(defined) {}

  void check(const View& view) {
    const Words tensors =
        view.code.is_directive ? Words{} : tensor_names_in(view.source(), view.code);
    const std::vector<lex::Scope> scopes = lex::scopes_of(view.source(), view.code);
    for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
      const bool is_host = scopes[i] != lex::Scope::kDevice;
      for (const SourceRule& rule : policy_.source_rules) {
        if (breaks(view, i, rule)) add(view, i, rule);
        if (is_host) check_operators(view, i, rule, tensors);
      }
    }
  }

  std::vector<task::RuleFinding> take() { return std::move(findings_); }

 private:
  bool breaks(const View& view, std::size_t i, const SourceRule& rule) const {
    if (!view.is_word(i)) return false;
    const std::string_view word = view.text(i);
    const bool is_own = defined_.contains(word) || is_member(view, i);
    return is_forbidden_call(view, i, rule.calls, defined_) || has_scope(view, i, rule.scopes) ||
           (!is_own && (rule.names.contains(word) ||
                        (view.text(i + 1) == "(" && has_prefix(word, rule.prefixes))));
  }

  void check_operators(const View& view, std::size_t i, const SourceRule& rule,
                       const Words& tensors) {
    if (rule.operators.empty() || !view.is_word(i)) return;
    if (!may_run(view, i) && (is_qualified_operator(view, i, rule.operators) ||
                              is_operator_on_tensor(view, i, rule.operators, tensors, defined_))) {
      add(view, i, rule);
    }
    if (is_member(view, i) || !tensors.contains(view.text(i))) return;
    for (const std::size_t method : methods_after(view.source(), view.code, i + 1)) {
      if (!may_run(view, method) && is_operator(view.text(method), rule.operators)) {
        add(view, method, rule);
      }
    }
  }

  // True for an allowed operator, such as normal_, although a rule forbids normal.
  bool may_run(const View& view, std::size_t i) const {
    return policy_.operators.contains(view.text(i));
  }

  void add(const View& view, std::size_t i, const SourceRule& rule) {
    const lex::Token& token = view.code.tokens[i];
    const std::string word(view.text(i).substr(0, kExcerptBytesMax));
    if (findings_.size() >= kFindingsMax || !seen_.emplace(rule.id + " " + word).second) return;
    task::SourceLocation location;
    location.source = view.file.name;
    location.line = static_cast<int>(token.line);
    location.column = static_cast<int>(token.column);
    location.excerpt = excerpt_of(view, token);
    findings_.push_back({rule.id, word + ": " + rule.message, location});
  }

  const Policy& policy_;
  const Words& defined_;
  Words seen_;
  std::vector<task::RuleFinding> findings_;
};

struct Read {
  const NativeSource& file;
  std::vector<lex::Code> regions;
};

}  // namespace

std::vector<task::RuleFinding> check_sources(const Policy& policy,
                                             const std::vector<NativeSource>& sources) {
  std::vector<Read> reads;
  Words defined;
  for (const NativeSource& source : sources) {
    reads.push_back({source, lex::regions_of(source.text, lex::tokenize(source.text))});
    for (const lex::Code& code : reads.back().regions) {
      note_definitions(View{source, code}, defined);
    }
  }
  Checker checker(policy, defined);
  for (const Read& read : reads) {
    for (const lex::Code& code : read.regions) checker.check(View{read.file, code});
  }
  return checker.take();
}

}  // namespace mc::legality
