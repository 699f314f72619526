// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  The text outside of directives is processed declaration by declaration,
// including those in namespaces, but no deeper.  Words before a declaration's body determine its
// side, and text for one side is overwritten with blanks in the other side's copy, except
// directives, which both keep.  Constructs that words do not determine are rejected.
#include "lex/split.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include "lex/code.h"
#include "lex/edit.h"
#include "lex/token.h"

namespace mc::lex {
namespace {

template <std::size_t N>
using Words = std::array<std::string_view, N>;

// Words that two compilers might treat differently, or that only nvcc implements: registered
// variables, device-wide algorithms, lambdas in kernels.
constexpr Words<13> kRefused = {"__constant__",
                                "__managed__",
                                "__CUDACC__",
                                "__NVCC__",
                                "cub",
                                "thrust",
                                "texture",
                                "surface",
                                "__CUDACC_RTC__",
                                "cudaLaunchDevice",
                                "__cluster_dims__",
                                "cudaMemcpyToSymbol",
                                "nv_is_extended_device_lambda_closure_type"};
constexpr Words<6> kMarks = {"__global__",   "__device__", "__host__",
                             "__constant__", "__shared__", "__managed__"};
constexpr Words<8> kAttributes = {"__launch_bounds__", "__attribute__", "alignas",
                                  "__align__",         "decltype",      "noexcept",
                                  "__maxnreg__",       "__declspec"};
constexpr Words<4> kTypeWords = {"class", "struct", "union", "enum"};
// Headers that device code needs and NVRTC reads; the others are for the host.
constexpr Words<3> kSharedHeaders = {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"};
constexpr Words<6> kDeviceHeaders = {"mma.h",
                                     "math_constants.h",
                                     "cooperative_groups.h",
                                     "cooperative_groups/reduce.h",
                                     "cuda_pipeline.h",
                                     "cuda_pipeline_primitives.h"};
// The name that both texts give to unnamed namespaces, so that their names are mangled alike;
// demanglers print it as (anonymous namespace).
constexpr std::string_view kUnnamed = "_GLOBAL__N_1";
// Last words of a parameter that has no name.
constexpr Words<14> kNoNames = {"int",   "float",  "double",        "bool",      "char",
                                "short", "long",   "unsigned",      "const",     "__restrict__",
                                "half",  "__half", "__nv_bfloat16", "__restrict"};
// Words that may occur in the declaration of a number.
constexpr Words<20> kNumberWords = {"static",   "inline",  "const",    "constexpr", "int",
                                    "float",    "double",  "bool",     "char",      "short",
                                    "long",     "signed",  "unsigned", "size_t",    "int32_t",
                                    "uint32_t", "int64_t", "uint64_t", "std",       "::"};
constexpr std::size_t kHeadTokensMax = 512;

bool is_in(const auto& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// One declaration: [begin, end), including the body of a function.
struct Declaration {
  std::size_t begin = 0;
  std::size_t head = 0;  // The index after template <...>.
  std::size_t end = 0;
  std::size_t parameters = kNone;  // The ( of a function's parameters.
  std::size_t body = kNone;        // The {.
  std::size_t template_open = kNone, template_close = kNone;
  bool is_type = false;
  bool has_value = false;
};

class Splitter {
 public:
  Splitter(std::string_view source, const std::vector<Token>& tokens)
      : source_(source), regions_(regions_of(source, tokens)), code_(regions_.front()) {
    is_directive_.assign(source.size(), false);
    for (const Token& token : tokens) {
      if (!token.in_directive) continue;
      std::fill_n(is_directive_.begin() + token.offset, token.size, true);
    }
    split_.host = split_.device = std::string(source);
  }

  Split run(const std::set<std::string>& macros) {
    check_words();
    read_directives(macros);
    if (split_.refusal.empty()) walk(0, code_.tokens.size(), "");
    if (split_.refusal.empty() && split_.kernels.empty()) refuse("no kernel");
    if (!split_.refusal.empty()) return Split{.refusal = std::move(split_.refusal)};
    check_calls();
    if (!split_.refusal.empty()) return Split{.refusal = std::move(split_.refusal)};
    for (const Code& region : regions_) rewrite_launches(region);
    if (overlap(host_) || overlap(device_)) return Split{.refusal = "changes that overlap"};
    split_.host = apply_edits(split_.host, std::move(host_));
    split_.device = apply_edits(split_.device, std::move(device_));
    return std::move(split_);
  }

 private:
  std::string_view text(std::size_t i) const { return text_at(source_, code_, i); }
  bool is_name(std::size_t i) const {
    return i < code_.tokens.size() && code_.tokens[i].kind == Kind::kIdentifier;
  }
  std::size_t begin_of(std::size_t i) const { return code_.tokens[i].offset; }
  std::size_t end_of(std::size_t i) const { return begin_of(i) + code_.tokens[i].size; }
  void refuse(std::string_view why) {
    if (split_.refusal.empty()) split_.refusal = why;
  }

  static bool overlap(std::vector<Edit>& edits) {
    std::ranges::stable_sort(edits, {}, &Edit::offset);
    for (std::size_t i = 1; i < edits.size(); ++i) {
      if (edits[i - 1].offset + edits[i - 1].size > edits[i].offset) return true;
    }
    return false;
  }

  void blank(std::string& side, std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end; ++i) {
      if (side[i] != '\n' && !is_directive_[i]) side[i] = ' ';
    }
  }
  void blank_tokens(std::string& side, std::size_t begin, std::size_t end) const {
    if (begin < end) blank(side, begin_of(begin), end_of(end - 1));
  }

  // ---- Rejected words ---------------------------------------------------------------------------

  void check_words() {
    for (const Code& region : regions_) {
      for (std::size_t i = 0; i < region.tokens.size(); ++i) {
        const std::string_view word = text_at(source_, region, i);
        if (is_in(kRefused, word)) return refuse(word);
        if (region.is_directive && is_in(kMarks, word)) return refuse("a mark in a macro");
        if (region.tokens[i].kind == Kind::kUnknown) return refuse("no C++");
      }
    }
    for (std::size_t i = 0; i < code_.tokens.size(); ++i) {
      const bool is_bracket = is_in(Words<6>{"(", ")", "[", "]", "{", "}"}, text(i));
      if (is_bracket && code_.partners[i] == kNone) return refuse("brackets without partners");
    }
  }

  // ---- Directives -------------------------------------------------------------------------------

  void read_directives(const std::set<std::string>& macros) {
    std::set<std::string_view> defined(macros.begin(), macros.end());
    defined.insert({"defined", "__CUDA_ARCH__"});
    for (std::size_t r = 1; r < regions_.size(); ++r) {
      const Code& region = regions_[r];
      const auto word = [&](std::size_t i) { return text_at(source_, region, i); };
      const std::string_view kind = word(1);
      if (kind == "include") {
        read_include(region, word(2));
      } else if (kind == "define") {
        defined.insert(word(2));
      } else if (is_in(Words<5>{"if", "ifdef", "ifndef", "elif", "else"}, kind)) {
        for (std::size_t i = 2; i < region.tokens.size(); ++i) {
          const bool is_macro = region.tokens[i].kind == Kind::kIdentifier;
          // A header guard tests the macro that it defines next.
          const bool is_guard = kind == "ifndef" && next_defines(r, word(i));
          if (is_macro && !is_guard && !defined.contains(word(i))) refuse("a foreign macro");
        }
      } else if (!is_in(Words<3>{"endif", "pragma", "undef"}, kind)) {
        refuse("a directive");
      }
    }
  }

  bool next_defines(std::size_t r, std::string_view name) const {
    return r + 1 < regions_.size() && text_at(source_, regions_[r + 1], 1) == "define" &&
           text_at(source_, regions_[r + 1], 2) == name;
  }

  // Sorts a header into the sides.  NVRTC has no host headers; it reports names that are missing.
  void read_include(const Code& region, std::string_view header) {
    if (header.size() < 2 || header.front() == '"') return refuse("a header of its own");
    const std::string_view name = header.substr(1, header.size() - 2);
    if (name.starts_with("cub/") || name.starts_with("thrust/")) return refuse("a library");
    const bool is_shared = is_in(kSharedHeaders, name);
    const bool is_device = is_in(kDeviceHeaders, name) || name.starts_with("cuda/");
    if (is_device || is_shared) split_.device_headers.emplace_back(header);
    // Device headers are included before the text, where macros of a prelude do not affect them.
    blank_directive(split_.device, region);
    if (is_device) blank_directive(split_.host, region);
  }

  static void blank_directive(std::string& side, const Code& region) {
    const Token& first = region.tokens.front();
    const Token& last = region.tokens.back();
    for (std::size_t i = first.offset; i < last.offset + last.size; ++i) {
      if (side[i] != '\n') side[i] = ' ';
    }
  }

  // ---- Declarations -----------------------------------------------------------------------------

  void walk(std::size_t i, std::size_t end, const std::string& scope) {
    while (i < end && split_.refusal.empty()) {
      if (text(i) == ";") {
        ++i;
      } else if (const std::size_t open = scope_open(i); open != kNone) {
        if (text(i) == "namespace" && open == i + 1) {
          for (auto* edits : {&host_, &device_}) {
            edits->push_back({begin_of(i), 0, "inline "});
            edits->push_back({begin_of(open), 0, std::string(kUnnamed)});
          }
        }
        walk(open + 1, code_.partners[open], scope + scope_name(i, open));
        i = code_.partners[open] + 1;
      } else {
        const Declaration one = declaration_at(i, end);
        if (!split_.refusal.empty()) return;
        take(one, scope);
        i = one.end;
      }
    }
  }

  // The { of a namespace or a linkage specification that begins at `i`.
  std::size_t scope_open(std::size_t i) const {
    const bool is_language = text(i) == "extern" && i + 1 < code_.tokens.size() &&
                             code_.tokens[i + 1].kind == Kind::kString;
    if (is_language) return text(i + 2) == "{" ? i + 2 : kNone;
    if (text(i) == "inline" && text(i + 1) == "namespace") ++i;
    if (text(i) != "namespace") return kNone;
    for (++i; is_name(i) || text(i) == "::"; ++i) {
    }
    return text(i) == "{" ? i : kNone;
  }

  std::string scope_name(std::size_t i, std::size_t open) const {
    if (text(i) != "namespace") return "";
    std::string name;
    for (++i; i < open; ++i) name += text(i);
    return (name.empty() ? std::string(kUnnamed) : name) + "::";
  }

  // The index after the template arguments or parameters that begin at `i`; kNone where there are
  // none.
  std::size_t after_angles(std::size_t i) const {
    int depth = 0;
    for (std::size_t j = i; j < std::min(code_.tokens.size(), i + kHeadTokensMax); ++j) {
      const std::string_view word = text(j);
      if (word == "(" || word == "[" || word == "{") j = code_.partners[j];
      if (word == ";" || word == ")" || word == "}") return kNone;
      if (word == "<") ++depth;
      if (word == ">") --depth;
      if (word == ">>") depth -= 2;
      if (depth <= 0) return depth == 0 ? j + 1 : kNone;
    }
    return kNone;
  }

  Declaration declaration_at(std::size_t begin, std::size_t end) {
    Declaration one{.begin = begin, .head = begin};
    std::size_t i = begin;
    while (text(i) == "template" && text(i + 1) == "<") {
      one.template_open = i + 1;
      i = after_angles(i + 1);
      if (i == kNone) return refuse("template parameters"), one;
      one.template_close = i - 1;
    }
    one.head = i;
    for (; i < end; ++i) {
      const std::string_view word = text(i);
      one.is_type = one.is_type || (is_in(kTypeWords, word) && one.parameters == kNone);
      if (word == ";") {
        one.end = i + 1;
        return one;
      }
      if (word == "=") one.has_value = one.has_value || one.parameters == kNone;
      if (word == "(" && one.parameters == kNone && !one.has_value &&
          !is_in(kAttributes, text(i - 1))) {
        one.parameters = i;
        one.is_type = false;
      }
      if (word == "<" && one.parameters == kNone && is_name(i - 1)) {
        const std::size_t after = after_angles(i);
        if (after != kNone) i = after - 1;
        continue;
      }
      if (word == "{" && one.parameters != kNone && !one.has_value && !initialises(i)) {
        one.body = i;
        one.end = code_.partners[i] + 1;
        return one;
      }
      if (word == "(" || word == "[" || word == "{") i = code_.partners[i];
    }
    refuse("a declaration without an end");
    return one;
  }

  // True for the brace of x{1} in a constructor's member initialiser list.
  bool initialises(std::size_t open) const {
    const std::string_view next = text(code_.partners[open] + 1);
    return is_name(open - 1) && (next == "," || next == "{");
  }

  bool has(const Declaration& one, std::string_view word) const {
    const std::size_t end = one.body != kNone ? one.body : one.end;
    for (std::size_t i = one.head; i < end; ++i) {
      if (text(i) == word) return true;
      if (text(i) == "(" || text(i) == "{") i = code_.partners[i];
    }
    return false;
  }

  void take(const Declaration& one, const std::string& scope) {
    const bool is_global = has(one, "__global__"), is_device = has(one, "__device__");
    if (one.parameters == kNone || one.is_type) return take_other(one, is_device);
    if (is_global) return take_kernel(one, scope);
    if (is_device && has(one, "__host__")) return;
    if (is_device) return blank_tokens(split_.host, one.begin, one.end);
    if (one.has_value && !has(one, "constexpr")) return take_other(one, false);
    if (has(one, "constexpr")) {
      device_.push_back({begin_of(one.head), 0, "__host__ __device__ "});
    } else {
      check_host(one);
      host_functions_.emplace_back(one.begin, one.end);
      blank_tokens(split_.device, one.begin, one.end);
    }
  }

  // Rejects a host function with a device lambda.
  void check_host(const Declaration& one) {
    for (std::size_t i = one.begin; i < one.end; ++i) {
      if (is_in(kMarks, text(i))) refuse("a mark in a host function");
    }
  }

  // Keeps types and constants on both sides, and variables on the host.
  void take_other(const Declaration& one, bool is_device) {
    if (has(one, "extern") && has(one, "__shared__")) {
      return blank_tokens(split_.host, one.begin, one.end);
    }
    if (one.is_type) return take_members(one);
    if (is_device) return refuse("a variable of the device");
    if (has(one, "__shared__")) return refuse("a shared variable");
    const bool is_variable = !has(one, "using") && !has(one, "typedef") &&
                             !has(one, "static_assert") && !has(one, "namespace");
    if (!is_variable) return;
    const bool is_constant = has(one, "const") || has(one, "constexpr");
    if (!is_constant) return blank_tokens(split_.device, one.begin, one.end);
    if (!is_number(one)) refuse("a constant that is no number");
  }

  // True for `static const int kN = 4`.  Kernels may use only numbers among the host's constants,
  // but NVRTC, which has no host side, would accept all.
  bool is_number(const Declaration& one) const {
    std::size_t num_other = 0;
    for (std::size_t i = one.head; i < one.end && !is_in(Words<3>{"=", "{", ";"}, text(i)); ++i) {
      if (!is_in(kNumberWords, text(i))) ++num_other;
    }
    return num_other == 1;  // The name of the constant.
  }

  // Rejects a direct call of a kernel: it must not compile, but a call of the generated host
  // function would.
  void check_calls() {
    for (const auto& [begin, end] : host_functions_) {
      for (std::size_t i = begin; i < end; ++i) {
        if (!is_name(i) || !short_names_.contains(text(i))) continue;
        const std::size_t next = text(i + 1) == "<" ? after_angles(i + 1) : i + 1;
        if (next != kNone && text(next) == "(") return refuse("a kernel that is called");
      }
    }
  }

  // Removes the bodies of device-only members in the host text, and makes calls of them an error.
  void take_members(const Declaration& one) {
    std::size_t first = one.head;  // The first word of a member.
    for (std::size_t i = one.head; i < one.end; ++i) {
      const std::string_view word = text(i);
      if (is_in(Words<4>{"{", "}", ";", ":"}, word)) first = i + 1;
      if (word == "__global__") return refuse("a kernel in a class");
      if (word == "static" && is_array(i, one.end)) return refuse("an array of a class");
      if (word == "__shared__") return refuse("a shared variable");
      if (word != "__device__") continue;
      const std::size_t parameters = parameters_behind(i, one.end);
      if (parameters == kNone) return refuse("a member of the device");
      bool is_host = false;
      for (std::size_t j = first; j < parameters; ++j) is_host = is_host || text(j) == "__host__";
      const std::size_t last = end_of_member(parameters, one.end);
      if (last == kNone) return refuse("a member without an end");
      if (!is_host) hide_member(i, parameters, last);
      i = last;
      first = i + 1;
    }
  }

  bool is_array(std::size_t i, std::size_t end) const {
    while (i < end && !is_in(Words<5>{"=", "{", ";", "(", "["}, text(i))) ++i;
    return text(i) == "[";
  }

  std::size_t parameters_behind(std::size_t i, std::size_t end) const {
    for (; i < end; ++i) {
      if (text(i) == ";" || text(i) == "{") return kNone;
      if (text(i) != "(") continue;
      if (text(i - 1) == "operator") i = code_.partners[i] + 1;  // operator()(...)
      if (!is_in(kAttributes, text(i - 1))) return text(i) == "(" ? i : kNone;
      i = code_.partners[i];
    }
    return kNone;
  }

  // The ; or } that ends the member whose parameters begin at `i`.
  std::size_t end_of_member(std::size_t i, std::size_t end) const {
    for (i = code_.partners[i] + 1; i < end; ++i) {
      if (text(i) == ";") return i;
      if (text(i) == "{" && !initialises(i)) return code_.partners[i];
      if (text(i) == "(" || text(i) == "{") i = code_.partners[i];
    }
    return kNone;
  }

  void hide_member(std::size_t mark, std::size_t parameters, std::size_t last) {
    host_.push_back({begin_of(mark), end_of(mark) - begin_of(mark),
                     "__attribute__((error(\"a function of the device\")))"});
    if (text(last) != "}") return;
    std::size_t body = code_.partners[parameters] + 1;
    while (is_in(Words<5>{"const", "noexcept", "override", "final", "&"}, text(body))) ++body;
    if (text(body) != "{" && text(body) != ":") return refuse("a member's result");
    blank_tokens(split_.host, body, last + 1);
    host_.push_back({begin_of(last), 1, ";"});
  }

  // ---- Kernels ----------------------------------------------------------------------------------

  void take_kernel(const Declaration& one, const std::string& scope) {
    for (std::size_t i = one.head; i < one.parameters; ++i) {
      if (text(i) != "static") continue;
      blank_tokens(split_.host, i, i + 1), blank_tokens(split_.device, i, i + 1);
    }
    if (one.body == kNone) return;
    const std::string name(text(one.parameters - 1));
    const bool is_template = one.template_open != kNone;
    if (!is_name(one.parameters - 1)) return refuse("a specialised kernel");
    if (std::ranges::find(split_.kernels, scope + name) != split_.kernels.end()) {
      return refuse("a kernel of several forms");
    }
    const auto parameters = names_in(one.parameters, code_.partners[one.parameters]);
    const auto arguments =
        is_template ? names_in(one.template_open, one.template_close) : std::vector<std::string>();
    if (!parameters || !arguments) return refuse("a parameter without a name");
    if (is_template && arguments->empty()) return refuse("a specialised kernel");
    split_.kernels.push_back(scope + name);
    short_names_.insert(text(one.parameters - 1));
    std::string self = name, values;
    for (const std::string& argument : *arguments) {
      self += (self == name ? "<" : ", ") + argument;
    }
    if (is_template) self += ">";
    for (const std::string& parameter : *parameters) values += "(void*)&" + parameter + ", ";
    blank_tokens(split_.host, one.body, one.end);
    const std::string launch = "mc_at_launch((const void*)&" + self + ", mc_at_values);";
    host_.push_back({begin_of(one.body), 1,
                     "{ void* mc_at_values[] = {" + values + "nullptr}; " + launch + " }"});
  }

  // The names of the parameters or template parameters between the brackets; a pack's has its dots.
  std::optional<std::vector<std::string>> names_in(std::size_t open, std::size_t close) const {
    std::vector<std::string> names;
    for (std::size_t i = open + 1; i < close;) {
      std::size_t last = kNone;
      bool is_pack = false, is_value = false;
      int depth = 0;
      for (; i < close && (depth > 0 || text(i) != ","); ++i) {
        const std::string_view word = text(i);
        if (word == "&" || word == "(" || word == "template") return std::nullopt;
        if (word == "<") ++depth;
        if (word == ">") --depth;
        if (word == ">>") depth -= 2;
        is_pack = is_pack || word == "...";
        is_value = is_value || (word == "=" && depth == 0) || word == "[";
        if (depth == 0 && !is_value && is_name(i)) last = i;
        if (word == "{" || word == "[") i = code_.partners[i];
      }
      // The type has one word and no name after it.
      const bool is_alone = last == kNone || is_in(kNoNames, text(last)) ||
                            is_in(Words<3>{",", "(", "<"}, text(last - 1)) ||
                            text(last - 1) == "::";
      if (is_alone) return std::nullopt;
      names.push_back(std::string(text(last)) + (is_pack ? "..." : ""));
      ++i;
    }
    return names;
  }

  // ---- Launches ---------------------------------------------------------------------------------

  void rewrite_launches(const Code& region) {
    const auto begin = [&](std::size_t i) { return region.tokens[i].offset; };
    const auto end = [&](std::size_t i) { return begin(i) + region.tokens[i].size; };
    for (const Launch& launch : launches_in(source_, region)) {
      std::string callee;
      for (std::size_t i = launch.callee; i < launch.open; ++i) {
        if (i > launch.callee && end(i - 1) != begin(i)) callee += ' ';
        callee += spelling_of(source_, region.tokens[i]);
      }
      const auto ends = [&](std::size_t from, std::size_t to) {
        std::string kept;
        for (const char c : source_.substr(from, to - from)) {
          if (c == '\n') kept += region.is_directive ? "\\\n" : "\n";
        }
        return kept;
      };
      const std::size_t from = begin(launch.callee), open = end(launch.open);
      if (split_.host[from] == ' ') continue;  // A launch in a device function.
      const std::size_t close = begin(launch.close), call = begin(launch.parenthesis_open);
      // The arguments may contain another launch, but never the configuration's position.
      host_.push_back({from, open - from, "(__cudaPushCallConfiguration(" + ends(from, open)});
      host_.push_back({close, call - close, ") ? (void)0 : " + callee + ends(close, call)});
      host_.push_back({end(launch.parenthesis_close), 0, ")"});
    }
  }

  const std::string_view source_;
  const std::vector<Code> regions_;
  const Code& code_;
  std::vector<bool> is_directive_;  // For each byte.
  Split split_;
  std::vector<Edit> host_, device_;
  std::vector<std::pair<std::size_t, std::size_t>> host_functions_;  // Ranges of tokens.
  std::set<std::string_view> short_names_;                           // The names of kernels.
};

}  // namespace

Split split_cuda(std::string_view source, const std::set<std::string>& macros) {
  const std::vector<Token> tokens = tokenize(source);
  return Splitter(source, tokens).run(macros);
}

}  // namespace mc::lex
