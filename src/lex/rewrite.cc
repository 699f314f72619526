// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  Each region proposes groups of edits: a launch (its callee and `<<<`, then
// its `>>>(`), a declaration of dynamic shared memory, a renamed token.  A group is taken as a
// whole or, where it would touch what an earlier group changes or a directive in its midst, not at
// all: such text is left for the compiler to complain about.  A rename inside a replaced span is
// made while the span is written.  Every span keeps its line ends.
#include "lex/rewrite.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "lex/code.h"
#include "lex/edit.h"

namespace mc::lex {
namespace {

constexpr std::size_t kKernelNameSizeMax = 200;
constexpr std::size_t kDeclarationTokensMax = 256;

// One region with what every step needs to look at it.
struct View {
  std::string_view source;
  const Code& code;

  std::string_view text(std::size_t i) const { return text_at(source, code, i); }
  std::size_t begin(std::size_t i) const { return code.tokens[i].offset; }
  std::size_t end(std::size_t i) const { return code.tokens[i].offset + code.tokens[i].size; }
};

// The line ends in the bytes [begin, end), which replacing them must not lose.
std::string line_ends(const View& view, std::size_t begin, std::size_t end) {
  std::string kept;
  for (const char c : view.source.substr(begin, end - begin)) {
    if (c == '\n') kept += view.code.is_directive ? "\\\n" : "\n";
  }
  return kept;
}

bool is_cuda_enumerator(const View& view, std::size_t i) {
  if (i >= 2 && view.text(i - 1) == "::") {
    const std::string_view scope = view.text(i - 2);
    return scope == "DeviceType" || scope == "DispatchKey" || scope == "Backend";
  }
  return i >= 4 && view.text(i - 1) == "," && view.text(i - 4) == "TORCH_LIBRARY_IMPL";
}

bool is_device_name(const View& view, std::size_t i) {
  const std::string_view text = view.text(i);
  const bool names_cuda = text == "\"cuda\"" || text.substr(0, 6) == "\"cuda:";
  return names_cuda && i >= 2 && (view.text(i - 1) == "(" || view.text(i - 1) == "{") &&
         (view.text(i - 2) == "Device" || view.text(i - 2) == "device");
}

// The text that the token at `i` becomes, or nothing if it stays.
std::optional<std::string_view> renamed(const View& view, std::size_t i) {
  const std::string_view text = view.text(i);
  if (view.code.tokens[i].kind == Kind::kIdentifier) {
    // The call x.type().is_cuda(): PyTorch's old type objects know of no other device.
    if (text == "type" && i + 4 < view.code.tokens.size() && view.text(i + 1) == "(" &&
        view.text(i + 2) == ")" && view.text(i + 3) == "." && view.text(i + 4) == "is_cuda") {
      return "device";
    }
    // Every access of a kernel is checked.
    if (text.starts_with("no_sanitize") || text.starts_with("__no_sanitize") ||
        text == "disable_sanitizer_instrumentation") {
      return "mc_always_checked";
    }
    if (text.starts_with("__tsan_")) return "mc_not_tsan";
    if (text.starts_with("_ZGV")) return "mc_no_guard";
    // Vector instructions of the host: no part of CUDA, and their stores are not seen.
    if (text.starts_with("_mm_") || text.starts_with("_mm256_") || text.starts_with("_mm512_") ||
        text.starts_with("__builtin_ia32_")) {
      return "mc_not_cuda";
    }
    // A call is seen; what is expanded in place may not be.
    if (text.starts_with("__builtin_mem"))
      return text.substr(std::string_view("__builtin_").size());
    // Clusters of more than one block are not emulated.
    if (text == "this_cluster" && view.source.find("__cluster_dims__") != std::string_view::npos) {
      return "mc_this_cluster_of_blocks";
    }
    if (text == "is_cuda") return "is_privateuseone";
    if (text == "kCUDA") return "kPrivateUse1";
    if (text == "CUDA" && is_cuda_enumerator(view, i)) return "PrivateUse1";
  }
  if (view.code.tokens[i].kind == Kind::kString && is_device_name(view, i))
    return "\"privateuseone\"";
  return std::nullopt;
}

// The tokens [begin, end) on one line, renamed, with a space where there was any white space.
std::string on_one_line(const View& view, std::size_t begin, std::size_t end) {
  std::string line;
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin && view.end(i - 1) != view.begin(i)) line += ' ';
    const std::optional<std::string_view> name = renamed(view, i);
    line += name ? std::string(*name) : spelling_of(view.source, view.code.tokens[i]);
  }
  return line;
}

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text.substr(0, kKernelNameSizeMax)) {
    if (c == '"' || c == '\\') literal += '\\';
    literal += c == '\n' ? ' ' : c;
  }
  return literal + "\"";
}

// The edits taken so far, and the places where there can be none.
class Plan {
 public:
  // Keeps the groups that come from now on out of [begin, end), until unblock_all().
  void block(std::size_t begin, std::size_t end) { blocked_[begin] = end; }
  void unblock_all() { blocked_.clear(); }

  void propose(std::vector<Edit> group) {
    for (const Edit& edit : group) {
      if (is_hit(taken_, edit) || is_hit(blocked_, edit)) return;
    }
    for (Edit& edit : group) {
      taken_[edit.offset] = edit.offset + edit.size;
      edits_.push_back(std::move(edit));
    }
  }
  std::vector<Edit> take() { return std::move(edits_); }

 private:
  using Spans = std::map<std::size_t, std::size_t>;  // Begin to end; disjoint.

  static bool is_hit(const Spans& spans, const Edit& edit) {
    const auto next = spans.lower_bound(edit.offset);
    if (next != spans.end() && next->first < edit.offset + edit.size) return true;
    return next != spans.begin() && std::prev(next)->second > edit.offset;
  }

  Spans taken_;
  Spans blocked_;
  std::vector<Edit> edits_;
};

Edit replace(const View& view, std::size_t begin, std::size_t end, std::string text) {
  return {begin, end - begin, std::move(text) + line_ends(view, begin, end)};
}

// The text between the lambda and the arguments.  In a macro, __VA_ARGS__ may be empty.
std::string argument_separator(const View& view, const Launch& launch) {
  const std::size_t num_tokens = launch.parenthesis_close - launch.parenthesis_open - 1;
  if (num_tokens == 0) return "";
  const bool may_vanish =
      num_tokens == 1 && view.text(launch.parenthesis_open + 1) == "__VA_ARGS__";
  return may_vanish ? ", ##" : ", ";
}

// A bare NULL would be passed on as an integer, which does not convert to a pointer any more.
void rewrite_null_arguments(const View& view, const Launch& launch, Plan& plan) {
  for (std::size_t i = launch.parenthesis_open + 1; i < launch.parenthesis_close; ++i) {
    const std::size_t partner = view.code.partners[i];
    if (partner != kNone && partner > i) i = partner;
    const bool is_alone = (view.text(i - 1) == "(" || view.text(i - 1) == ",") &&
                          (view.text(i + 1) == ")" || view.text(i + 1) == ",");
    if (view.text(i) == "NULL" && is_alone) {
      plan.propose({{view.begin(i), view.end(i) - view.begin(i), "nullptr"}});
    }
  }
}

void rewrite_launch(const View& view, const Launch& launch, Plan& plan) {
  const std::string callee = on_one_line(view, launch.callee, launch.open);
  plan.propose({replace(view, view.begin(launch.callee), view.end(launch.open),
                        "::mc_emu::launch(::mc_emu::Config("),
                replace(view, view.begin(launch.close), view.end(launch.parenthesis_open),
                        "), " + quoted(callee) + ", [=](auto... mc_a) MC_EMU_CALL { " + callee +
                            "(mc_a...); }" + argument_separator(view, launch))});
  rewrite_null_arguments(view, launch, plan);
}

// The form extern __shared__ type name[...]...; as tokens: [begin, end), `end` at the semicolon.
struct SharedDeclaration {
  std::size_t begin = 0;
  std::size_t end = 0;
};

bool is_specifier(std::string_view text) {
  return text == "extern" || text == "__shared__" || text == "static" || text == "inline";
}

bool is_attribute(std::string_view text) {
  return text == "__align__" || text == "alignas" || text == "__attribute__";
}

// The index behind the attribute at `i` and its parentheses.
std::size_t skip_attribute(const View& view, std::size_t i) {
  const std::size_t open = i + 1;
  if (view.text(open) != "(" || view.code.partners[open] == kNone) return open;
  return view.code.partners[open] + 1;
}

std::optional<SharedDeclaration> shared_declaration_at(const View& view, std::size_t i) {
  if (view.text(i) != "extern" && view.text(i) != "__shared__") return std::nullopt;
  bool has_extern = false;
  bool has_shared = false;
  std::size_t j = i;
  while (j < view.code.tokens.size() && j - i < kDeclarationTokensMax && view.text(j) != ";") {
    const std::string_view text = view.text(j);
    has_extern = has_extern || text == "extern";
    has_shared = has_shared || text == "__shared__";
    if (text == "{" || text == "}" || text == "=") return std::nullopt;
    j = is_attribute(text) ? skip_attribute(view, j) : j + 1;
  }
  if (!has_extern || !has_shared || view.text(j) != ";") return std::nullopt;
  return SharedDeclaration{i, j};
}

// One declarator: a name and the dimensions after its first one ("[32]" of name[][32]).
struct Declarator {
  std::string name;
  bool is_array = false;
  std::string dimensions;
};

struct Declared {
  std::string type;
  std::vector<Declarator> declarators;
};

Declarator read_declarator(const View& view, std::size_t& i, std::size_t end) {
  Declarator declarator;
  declarator.name = std::string(view.text(i++));
  while (i < end && view.text(i) == "[" && view.code.partners[i] != kNone) {
    const std::size_t next = view.code.partners[i] + 1;
    if (declarator.is_array) declarator.dimensions += on_one_line(view, i, next);
    declarator.is_array = true;
    i = next;
  }
  while (i < end && is_attribute(view.text(i))) i = skip_attribute(view, i);
  return declarator;
}

// The index of the first declarator's name: before the first `[`, or at the end.
std::size_t first_name(const View& view, const SharedDeclaration& declaration) {
  for (std::size_t i = declaration.begin; i < declaration.end; ++i) {
    if (view.text(i) == "[") return i - 1;
  }
  return declaration.end - 1;
}

std::optional<Declared> read_declaration(const View& view, const SharedDeclaration& declaration) {
  Declared declared;
  std::size_t i = declaration.begin;
  const std::size_t name = first_name(view, declaration);
  while (i < name) {
    if (is_attribute(view.text(i))) {
      i = skip_attribute(view, i);
      continue;
    }
    if (!is_specifier(view.text(i))) {
      const bool needs_space = !declared.type.empty() && view.end(i - 1) != view.begin(i);
      declared.type += (needs_space ? " " : "") + on_one_line(view, i, i + 1);
    }
    ++i;
  }
  while (i < declaration.end) {
    if (view.code.tokens[i].kind != Kind::kIdentifier) return std::nullopt;
    declared.declarators.push_back(read_declarator(view, i, declaration.end));
    if (i < declaration.end && view.text(i++) != ",") return std::nullopt;
  }
  if (declared.type.empty() || declared.declarators.empty()) return std::nullopt;
  return declared;
}

std::string local_shared(const std::string& type, const Declarator& declarator) {
  constexpr std::string_view kMemory = "(::mc_emu::dynamic_shared())";
  const std::string& name = declarator.name;
  const std::string& rest = declarator.dimensions;
  std::string pointer = rest.empty() ? type + "*" : type + " (*)" + rest;
  const std::string value = "static_cast<" + pointer + ">" + std::string(kMemory);
  if (!declarator.is_array) return type + "& " + name + " = *" + value;
  return (rest.empty() ? type + "* " + name : type + " (*" + name + ")" + rest) + " = " + value;
}

std::string global_shared(const std::string& type, const Declarator& declarator) {
  return "static ::mc_emu::DynamicShared<" + type + declarator.dimensions + "> " + declarator.name;
}

// Rewrites the declaration up to its semicolon, which stays.  The names at namespace scope are
// added to `globals`.
void rewrite_shared(const View& view, const SharedDeclaration& declaration, Scope scope, Plan& plan,
                    std::set<std::string, std::less<>>& globals) {
  const std::optional<Declared> declared = read_declaration(view, declaration);
  if (!declared) return;
  if (scope == Scope::kNamespace) {
    for (const Declarator& declarator : declared->declarators) globals.insert(declarator.name);
  }
  std::string text;
  for (const Declarator& declarator : declared->declarators) {
    if (!text.empty()) text += "; ";
    text += scope == Scope::kNamespace ? global_shared(declared->type, declarator)
                                       : local_shared(declared->type, declarator);
  }
  plan.propose({replace(view, view.begin(declaration.begin), view.begin(declaration.end), text)});
}

// `reinterpret_cast<T*>(name)`, where `name` is an array at namespace scope, for which an object
// stands: the operand becomes a pointer.
void rewrite_shared_casts(const View& view, const std::set<std::string, std::less<>>& globals,
                          Plan& plan) {
  constexpr std::size_t kTypeTokensMax = 32;
  for (std::size_t i = 0; i < view.code.tokens.size() && !globals.empty(); ++i) {
    if (view.text(i) != "reinterpret_cast") continue;
    std::size_t open = i + 1;
    const std::size_t limit = std::min(view.code.tokens.size(), open + kTypeTokensMax);
    while (open < limit && view.text(open) != "(") ++open;
    if (open == limit || view.text(open - 1) != ">") continue;
    if (!globals.contains(view.text(open + 1)) || view.text(open + 2) != ")") continue;
    plan.propose({replace(view, view.begin(open + 1), view.end(open + 1),
                          "::mc_emu::decayed(" + std::string(view.text(open + 1)) + ")")});
  }
}

void rewrite_shared_declarations(const View& view, Plan& plan) {
  const std::vector<Scope> scopes = scopes_of(view.source, view.code);
  std::set<std::string, std::less<>> globals;
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    const std::optional<SharedDeclaration> declaration = shared_declaration_at(view, i);
    if (!declaration) continue;
    rewrite_shared(view, *declaration, scopes[i], plan, globals);
    i = declaration->end;
  }
  rewrite_shared_casts(view, globals, plan);
}

// g++ takes alignas only in front of all specifiers, nvcc also behind __shared__.
void rewrite_aligned_shared(const View& view, Plan& plan) {
  const auto is_specifier = [&](std::size_t i) {
    return view.text(i) == "static" || view.text(i) == "const" || view.text(i) == "volatile";
  };
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    if (view.text(i) != "__shared__" || view.text(i + 1) != "alignas" || view.text(i + 2) != "(") {
      continue;
    }
    const std::size_t close = view.code.partners[i + 2];
    if (close == kNone) continue;
    std::size_t first = i;
    while (first > 0 && is_specifier(first - 1)) --first;
    plan.propose(
        {replace(view, view.begin(first), view.end(close),
                 on_one_line(view, i + 1, close + 1) + " " + on_one_line(view, first, i + 1))});
  }
}

bool is_bounds(std::string_view text) {
  return text == "__launch_bounds__" || text == "C10_LAUNCH_BOUNDS_1" ||
         text == "C10_LAUNCH_BOUNDS_2";
}

// The `{` of the kernel whose bounds are the group that begins at `open`; kNone for a declaration.
std::size_t body_of_bounded(const View& view, std::size_t open) {
  std::size_t i = view.code.partners[open] + 1;
  const std::size_t limit = std::min(view.code.tokens.size(), i + kDeclarationTokensMax);
  while (i < limit && view.text(i) != ";" && view.text(i) != "{" && view.text(i) != "}") {
    if (view.text(i) != "(" || view.code.partners[i] == kNone) {
      ++i;
      continue;
    }
    const std::string_view before = view.text(i - 1);
    i = view.code.partners[i] + 1;
    const bool is_attribute_group = is_attribute(before) || before == "__maxnreg__" ||
                                    before == "__cluster_dims__" || is_bounds(before);
    if (!is_attribute_group) return view.text(i) == "{" ? i : kNone;
  }
  return kNone;
}

// A kernel checks its __launch_bounds__ itself, where template parameters are known.
void rewrite_launch_bounds(const View& view, Plan& plan) {
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    if (!is_bounds(view.text(i)) || view.text(i + 1) != "(") continue;
    const std::size_t close = view.code.partners[i + 1];
    if (close == kNone || close == i + 2) continue;
    const std::size_t body = body_of_bounded(view, i + 1);
    if (body == kNone || view.text(body + 4) == "check_launch_bounds") continue;
    plan.propose(
        {replace(view, view.begin(body), view.end(body),
                 "{ ::mc_emu::check_launch_bounds(" + on_one_line(view, i + 2, close) + ");")});
  }
}

bool is_asm(const View& view, std::size_t i) {
  const std::string_view text = view.text(i);
  return view.code.tokens[i].kind == Kind::kIdentifier &&
         (text == "asm" || text == "__asm__" || text == "__asm");
}

// The operands of one section of an asm statement, "=r"(x), as arguments of ptx(); the index behind
// them, or kNone where the section is not of this form.
std::size_t read_operands(const View& view, std::size_t i, std::size_t end, std::string_view wrap,
                          std::string& arguments) {
  while (i < end && view.text(i) != ":" && view.text(i) != "::") {
    if (view.text(i) == ",") {
      ++i;
      continue;
    }
    if (view.code.tokens[i].kind != Kind::kString || view.text(i + 1) != "(") return kNone;
    const std::size_t close = view.code.partners[i + 1];
    if (close == kNone) return kNone;
    const bool is_read_too = view.text(i).find('+') != std::string_view::npos;
    arguments += ", ::mc_emu::ptx_" + std::string(is_read_too ? "update" : wrap) + "(" +
                 on_one_line(view, i + 2, close) + ")";
    i = close + 1;
  }
  return i;
}

// The text that the asm statement with the parentheses at `open` and `close` becomes, or nothing
// where its form is unknown.
std::optional<std::string> ptx_call(const View& view, std::size_t open, std::size_t close) {
  std::size_t i = open + 1;
  while (i < close && view.text(i) != ":" && view.text(i) != "::") {
    const Kind kind = view.code.tokens[i].kind;
    if (kind != Kind::kString && kind != Kind::kIdentifier && view.text(i) != "#") {
      return std::nullopt;
    }
    ++i;
  }
  const bool is_basic = i == close;
  const std::string text = on_one_line(view, open + 1, i);
  std::string arguments;
  for (int section = 0; section < 2 && i < close; ++section) {
    if (view.text(i) == "::" && section == 0) section = 1;
    i = read_operands(view, i + 1, close, section == 0 ? "output" : "input", arguments);
    if (i == kNone) return std::nullopt;
    if (i < close && view.text(i) == "::") break;  // Only clobbers follow.
  }
  return "::mc_emu::ptx(" + text + ", __LINE__, " + (is_basic ? "1" : "0") + arguments;
}

// An asm volatile("..." : ...) becomes a call that runs the instructions, or one that says so if it
// is ever reached.  An empty one is a compiler barrier, which any compiler understands.
void rewrite_asm(const View& view, Plan& plan) {
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    if (!is_asm(view, i)) continue;
    std::size_t open = i + 1;
    while (open < view.code.tokens.size() && view.code.tokens[open].kind == Kind::kIdentifier) {
      ++open;
    }
    if (open >= view.code.tokens.size() || view.text(open) != "(") continue;
    const std::size_t close = view.code.partners[open];
    const bool is_barrier = view.text(open + 1) == "\"\"" && open + 2 < view.code.tokens.size() &&
                            view.code.tokens[open + 2].kind != Kind::kString;
    if (close == kNone || is_barrier) continue;
    const std::optional<std::string> call = ptx_call(view, open, close);
    std::string text = call.value_or("::mc_emu::unsupported(\"inline PTX (asm)\"");
    Edit edit = replace(view, view.begin(i), view.begin(close), text);
    // A raw string keeps the ends of its lines.
    for (const char c : text) {
      const std::size_t last = edit.replacement.rfind('\n');
      if (c == '\n' && last != std::string::npos && last >= text.size()) {
        edit.replacement.erase(last, 1);
      }
    }
    plan.propose({std::move(edit)});
    i = close;
  }
}

// The index behind `(void*)`, `(const void*)` or `reinterpret_cast<void*>(` at `i`, or kNone.
std::size_t after_void_cast(const View& view, std::size_t i, bool* is_cast_operator) {
  *is_cast_operator = view.text(i) == "reinterpret_cast" || view.text(i) == "static_cast";
  const std::string_view opener = *is_cast_operator ? "<" : "(";
  const std::string_view closer = *is_cast_operator ? ">" : ")";
  if (*is_cast_operator) ++i;
  if (view.text(i) != opener) return kNone;
  bool has_void = false, has_star = false;
  for (++i; view.text(i) == "void" || view.text(i) == "const" || view.text(i) == "*"; ++i) {
    has_void = has_void || view.text(i) == "void";
    has_star = has_star || view.text(i) == "*";
  }
  if (!has_void || !has_star || view.text(i) != closer) return kNone;
  if (*is_cast_operator && view.text(++i) != "(") return kNone;
  return i + 1;
}

// The end of the name with its scopes and template arguments that begins at `i`; `i` where none
// does.  `last` is its last identifier.
std::size_t name_end(const View& view, std::size_t i, std::string_view* last) {
  if (view.text(i) == "::") ++i;
  while (i < view.code.tokens.size() && view.code.tokens[i].kind == Kind::kIdentifier) {
    *last = view.text(i++);
    if (view.text(i) == "<") {
      int depth = 0;
      const std::size_t limit = std::min(view.code.tokens.size(), i + kDeclarationTokensMax);
      for (; i < limit; ++i) {
        if (view.text(i) == "(" && view.code.partners[i] != kNone) i = view.code.partners[i];
        if (view.text(i) == "<") ++depth;
        if (view.text(i) == ">") --depth;
        if (view.text(i) == ">>") depth -= 2;
        if (depth <= 0) break;
      }
      ++i;
    }
    if (view.text(i) != "::") break;
    ++i;
  }
  return i;
}

// The names of functions marked __global__.
std::set<std::string_view> kernels_in(const View& view) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    if (view.text(i) != "__global__") continue;
    for (std::size_t k = i + 1; k < std::min(view.code.tokens.size(), i + 64); ++k) {
      const bool is_attribute_list =
          view.text(k - 1) == "__launch_bounds__" || view.text(k - 1) == "__attribute__" ||
          view.text(k - 1) == "__cluster_dims__" || view.text(k - 1) == "__maxnreg__";
      if (view.text(k) == "(" && is_attribute_list && view.code.partners[k] != kNone) {
        k = view.code.partners[k];
      } else if (view.text(k) == "(") {
        if (view.code.tokens[k - 1].kind == Kind::kIdentifier) names.insert(view.text(k - 1));
        break;
      }
    }
  }
  return names;
}

// True if the expression at `i` is the kernel of a launch through a function of the runtime.
bool is_launched(const View& view, std::size_t i) {
  return i >= 2 && view.text(i - 1) == "(" &&
         (view.text(i - 2) == "cudaLaunchKernel" ||
          view.text(i - 2) == "cudaLaunchCooperativeKernel");
}

// (void*)kernel loses the kernel's type, which a later launch through the address needs:
// ::mc_emu::kernel_pointer(kernel) notes it.
void rewrite_kernel_casts(const View& view, Plan& plan) {
  const std::set<std::string_view> kernels = kernels_in(view);
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    bool is_cast_operator = false;
    const std::size_t begin = after_void_cast(view, i, &is_cast_operator);
    if (begin == kNone) continue;
    const std::size_t name = view.text(begin) == "&" ? begin + 1 : begin;
    std::string_view last;
    const std::size_t end = name_end(view, name, &last);
    if (end == name || end > view.code.tokens.size()) continue;
    if (!kernels.contains(last) && !is_launched(view, i)) continue;
    if (is_cast_operator && view.text(end) != ")") continue;
    const std::size_t stop = is_cast_operator ? end + 1 : end;
    plan.propose({replace(view, view.begin(i), view.end(stop - 1),
                          "::mc_emu::kernel_pointer(" + on_one_line(view, begin, end) + ")")});
    i = stop - 1;
  }
}

void rename_tokens(const View& view, Plan& plan) {
  for (std::size_t i = 0; i < view.code.tokens.size(); ++i) {
    const std::optional<std::string_view> name = renamed(view, i);
    if (name) plan.propose({{view.begin(i), view.end(i) - view.begin(i), std::string(*name)}});
  }
}

void rewrite_region(const View& view, Plan& plan) {
  for (const Launch& launch : launches_in(view.source, view.code)) {
    rewrite_launch(view, launch, plan);
  }
  rewrite_shared_declarations(view, plan);
  rewrite_aligned_shared(view, plan);
  rewrite_launch_bounds(view, plan);
  rewrite_asm(view, plan);
  rewrite_kernel_casts(view, plan);
  rename_tokens(view, plan);
}

std::vector<Edit> edits_for_cpu(std::string_view source, const std::vector<Code>& regions) {
  Plan plan;
  for (const Code& code : regions) {
    if (!code.is_directive) continue;
    plan.block(code.tokens.front().offset, code.tokens.back().offset + code.tokens.back().size);
  }
  rewrite_region(View{source, regions.front()}, plan);
  plan.unblock_all();
  for (std::size_t i = 1; i < regions.size(); ++i) rewrite_region(View{source, regions[i]}, plan);
  return plan.take();
}

}  // namespace

Rewritten rewrite_for_cpu(std::string_view source) {
  const std::vector<Code> regions = regions_of(source, tokenize(source));
  return {apply_edits(source, edits_for_cpu(source, regions)), unsupported_in(source, regions)};
}

}  // namespace mc::lex
