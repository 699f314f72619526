// SPDX-License-Identifier: Apache-2.0
#include "compile/facade.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <system_error>
#include <utility>

#include "core/file.h"
#include "core/text.h"
#include "lex/code.h"
#include "lex/token.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeaderBytesMax = 4 << 20;
constexpr size_t kNamesBytesMax = 64 << 20;
constexpr size_t kNameBytesMin = 3;
// Headers of these namespaces need libraries that a machine may lack, so their names are not
// listed.
constexpr const char* kOfCuda = "cuda::";
constexpr const char* kOthers = "\n# Others\n";  // The line before the second list of names.
constexpr std::array<std::string_view, 6> kNamespaces = {"at",     "torch",    "c10",
                                                         "caffe2", "pybind11", "py"};
constexpr std::array<std::string_view, 7> kFolders = {"torch", "ATen", "c10",     "caffe2",
                                                      "TH",    "THC",  "pybind11"};
constexpr std::array<std::string_view, 7> kMacros = {"AT_",       "TORCH_",       "C10_", "CAFFE2_",
                                                     "PYBIND11_", "CUDA_KERNEL_", "THC"};
// A macro that a compiler flag defines.
constexpr std::string_view kGiven = "TORCH_EXTENSION_NAME";

template <class Take>
void for_each_identifier(std::string_view text, Take take) {
  for (size_t i = 0; i < text.size();) {
    if (!is_word_byte(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && is_word_byte(text[i])) ++i;
    if (std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      take(text.substr(begin, i - begin));
    }
  }
}

// The quoted parts of a compiler's message, with blanks for the rest: nvcc quotes with ", g++ with
// '.
std::string quoted_in(std::string message) {
  const char quote = message.find('"') != std::string::npos ? '"' : '\'';
  bool is_inside = false;
  for (char& c : message) {
    const bool is_quote = c == quote;
    if (is_quote) is_inside = !is_inside;
    if (is_quote || !is_inside) c = ' ';
  }
  return message;
}

void add_names(std::string_view text, Names& names) {
  for_each_identifier(text, [&](std::string_view name) {
    if (!names.contains(name)) names.emplace(name);
  });
}

// The index after the angle brackets at `i`.
size_t after_angles(std::string_view text, const lex::Code& code, size_t i) {
  int depth = 0;
  for (; i < code.tokens.size(); ++i) {
    const std::string_view word = lex::text_at(text, code, i);
    if (word == "(" && code.partners[i] != lex::kNone) i = code.partners[i];
    if (word == "<") ++depth;
    if (word == ">") --depth;
    if (word == ">>") depth -= 2;
    if (depth <= 0) return i + 1;
  }
  return i;
}

// Adds names that a program can use without a qualifying object: those in namespaces, enumerators
// and macros; not parameters, local names and members.
void add_declared_names(std::string_view text, Names& names) {
  for (const lex::Code& code : lex::regions_of(text, lex::tokenize(text))) {
    const auto word = [&](size_t i) { return lex::text_at(text, code, i); };
    if (code.is_directive) {
      if (word(1) == "define") names.emplace(word(2));
      continue;
    }
    const std::vector<lex::Scope> scopes = lex::scopes_of(text, code);
    size_t enum_end = 0;
    for (size_t i = 0; i < code.tokens.size(); ++i) {
      const bool has_partner = code.partners[i] != lex::kNone;
      if (word(i) == "(" && has_partner) {
        i = code.partners[i];
      } else if (word(i) == "template" && word(i + 1) == "<") {
        i = after_angles(text, code, i + 1) - 1;
      } else if (word(i) == "enum" && scopes[i] == lex::Scope::kNamespace &&
                 word(i + 1) != "class" && word(i + 1) != "struct") {
        size_t open = i;
        while (word(open) != "{" && word(open) != ";" && open < code.tokens.size()) ++open;
        if (word(open) == "{" && code.partners[open] != lex::kNone) enum_end = code.partners[open];
      }
      const bool is_named = scopes[i] == lex::Scope::kNamespace || i < enum_end;
      if (is_named && code.tokens[i].kind == lex::Kind::kIdentifier) names.emplace(word(i));
    }
  }
}

// True for a name that only the facade has: sources that use it must not compile.
bool is_own(std::string_view name) {
  return name.starts_with("mc_at") || name.starts_with("MC_AT");
}

bool is_one_of(std::string_view word, const auto& words) {
  return std::ranges::find(words, word) != words.end();
}

struct Words {
  std::string_view text;
  std::vector<lex::Token> tokens;  // The tokens without trivia.

  explicit Words(std::string_view source) : text(source) {
    for (const lex::Token& token : lex::tokenize(source)) {
      if (!lex::is_trivia(token)) tokens.push_back(token);
    }
  }
  std::string_view at(size_t i) const {
    return i < tokens.size() ? lex::text_of(text, tokens[i]) : std::string_view();
  }
  bool is_identifier(size_t i) const {
    return i < tokens.size() && tokens[i].kind == lex::Kind::kIdentifier;
  }
};

// Adds the names of macros that `text` itself defines.
void add_defined(std::string_view text, Names& defined) {
  const Words words(text);
  for (size_t i = 0; i < words.tokens.size(); ++i) {
    if (words.at(i) == "define" && words.is_identifier(i + 1)) defined.emplace(words.at(i + 1));
  }
}

std::vector<std::string> texts_of(const Extension& extension) {
  std::vector<std::string> texts = extension.cpp_sources;
  texts.insert(texts.end(), extension.cuda_sources.begin(), extension.cuda_sources.end());
  for (const SourceFile& file : extension.files) texts.push_back(file.text);
  return texts;
}

// Headers in which the standard library and CUDA declare names that PyTorch's headers make
// available.
struct Home {
  std::string_view header;
  std::string_view names;  // Separated by spaces, also at both ends.
};
constexpr Home kHomes[] = {
    {"algorithm",
     " sort stable_sort max_element min_element minmax_element find_if count_if all_of any_of "
     "none_of transform for_each generate reverse rotate unique clamp lower_bound upper_bound "
     "nth_element partial_sort remove_if binary_search "},
    {"array", " array "},
    {"cassert", " assert "},
    {"cfloat", " FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON FLT_DIG DBL_DIG "},
    {"chrono", " chrono "},
    {"climits",
     " INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN LLONG_MAX LLONG_MIN ULLONG_MAX CHAR_BIT "
     "SHRT_MAX UCHAR_MAX "},
    {"functional", " function bind hash plus minus multiplies greater less reference_wrapper "},
    {"iostream", " cout cerr clog endl "},
    {"map", " map multimap "},
    {"memory", " unique_ptr shared_ptr make_unique make_shared weak_ptr "},
    {"mutex", " mutex lock_guard unique_lock once_flag call_once "},
    {"numeric", " accumulate iota inner_product partial_sum gcd lcm "},
    {"random", " mt19937 random_device uniform_real_distribution normal_distribution "},
    {"set", " set multiset "},
    {"sstream", " stringstream ostringstream istringstream "},
    {"stdexcept",
     " runtime_error invalid_argument logic_error out_of_range domain_error length_error "},
    {"unordered_map", " unordered_map "},
    {"unordered_set", " unordered_set "},
    {"complex", " complex "},
    {"atomic", " atomic "},
};
static_assert(std::ranges::all_of(kHomes, [](const Home& home) {
  return home.names.starts_with(' ') && home.names.ends_with(' ');
}));

// True for an error of ptxas, which is the candidate's: the facade has no device code.
bool is_of_ptxas(const task::Diagnostic& entry) {
  return entry.location.source.empty() && entry.message.starts_with("ptxas: ");
}

// True for an error of a text that ends within a block or a statement.  The compiler reports it in
// the text of ours that follows, which is correct by itself.
bool is_at_end(const task::Diagnostic& entry) {
  return entry.location.source.empty() && entry.message.starts_with("expected ");
}

// True where a number or a pointer to numbers is used as a tensor; neither converts to one.
bool is_number_as_tensor(std::string_view message) {
  constexpr std::string_view kBefore = "no suitable constructor exists to convert from \"",
                             kAfter = "\" to \"at::Tensor\"";
  constexpr std::array<std::string_view, 10> kWords = {
      "const", "float", "double", "int", "long", "short", "unsigned", "char", "bool", "__half"};
  if (!message.starts_with(kBefore) || !message.ends_with(kAfter)) return false;
  message.remove_prefix(kBefore.size());
  message.remove_suffix(kAfter.size());
  bool are_numbers = !message.empty();
  for_each_identifier(message, [&](std::string_view word) {
    are_numbers &= std::ranges::find(kWords, word) != kWords.end();
  });
  return are_numbers;
}

// The member that a class or namespace lacks according to the message; "" for another error.
std::string absent_member(const std::string& message) {
  std::vector<std::string> names;
  for_each_identifier(quoted_in(message), [&](std::string_view name) { names.emplace_back(name); });
  if (names.empty()) return "";
  if (message.find("has no member") != std::string::npos) return names.back();
  return message.find("is not a member of") != std::string::npos ? names.front() : "";
}

bool holds_word(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != std::string_view::npos; at = words.find(word, at + 1)) {
    if (words[at - 1] == ' ' && words[at + word.size()] == ' ') return true;
  }
  return false;
}

}  // namespace

Result<Facade> Facade::read(std::vector<fs::path> roots, const fs::path& missing_names) {
  Facade facade;
  facade.roots_ = std::move(roots);
  for (const fs::path& root : facade.roots_) {
    std::error_code failure;
    for (const auto& entry : fs::recursive_directory_iterator(root, failure)) {
      if (!entry.is_regular_file(failure)) continue;
      MC_TRY(const std::string text, read_file(entry.path(), kHeaderBytesMax), "facade");
      add_names(text, facade.names_);
    }
  }
  MC_TRY(const std::string text, read_file(missing_names, kNamesBytesMax), "facade");
  const size_t end = std::min(text.find(kOthers), text.size());
  add_names(std::string_view(text).substr(0, end), facade.missing_);
  add_names(std::string_view(text).substr(end), facade.others_);
  return facade;
}

bool Facade::is_made_up(std::string_view name) const {
  return !names_.contains(name) && !missing_.contains(name) && !others_.contains(name);
}

bool Facade::has_header(std::string_view header) const {
  return std::ranges::any_of(roots_, [&](const fs::path& root) {
    std::error_code failure;
    return fs::is_regular_file(root / header, failure);
  });
}

std::string Facade::lacks_in(std::string_view text, const Names& defined) const {
  const Words words(text);
  for (size_t i = 0; i < words.tokens.size(); ++i) {
    const std::string_view word = words.at(i);
    if (words.tokens[i].kind == lex::Kind::kHeader && word.size() > 2) {
      const std::string_view header = word.substr(1, word.size() - 2);
      const bool is_torch = is_one_of(header.substr(0, header.find('/')), kFolders) &&
                            header.find('/') != std::string_view::npos;
      if ((is_torch && !has_header(header)) || is_own(header)) return std::string(word);
    }
    if (!words.is_identifier(i)) continue;
    if (is_own(word)) return std::string(word);
    const bool is_macro = std::ranges::any_of(
        kMacros, [&](std::string_view prefix) { return word.starts_with(prefix); });
    if (is_macro && word != kGiven && !names_.contains(word) && !defined.contains(word) &&
        !is_made_up(word)) {
      return std::string(word);
    }
    if (!is_one_of(word, kNamespaces) || words.at(i + 1) != "::") continue;
    if (i > 0 && (words.at(i - 1) == "." || words.at(i - 1) == "->")) continue;
    std::string path(word);
    for (size_t j = i + 1; words.at(j) == "::" && words.is_identifier(j + 1); j += 2) {
      path += "::" + std::string(words.at(j + 1));
      const bool is_absent = is_made_up(words.at(j + 1)) && path.find(kOfCuda) == std::string::npos;
      if (!names_.contains(words.at(j + 1)) && !is_absent) return path;
    }
  }
  return "";
}

std::string Facade::lacks(const Extension& extension) const {
  const std::vector<std::string> texts = texts_of(extension);
  Names defined;
  for (const std::string& text : texts) add_defined(text, defined);
  for (const std::string& text : texts) {
    if (std::string found = lacks_in(text, defined); !found.empty()) return found;
  }
  return "";
}

std::string Facade::facade_error(const std::vector<task::Diagnostic>& diagnostics,
                                 const LocationMapper& mapper) const {
  for (const task::Diagnostic& entry : diagnostics) {
    if (entry.severity != "error" || is_of_ptxas(entry) || is_at_end(entry)) continue;
    // Only the first error counts, since later ones may follow from it.
    const bool is_own = mapper.owns(entry.location.source) && is_own_error(entry.message);
    return is_own ? "" : entry.message;
  }
  return "";
}

bool Facade::is_own_error(const std::string& message) const {
  constexpr std::array<std::string_view, 4> kInner = {"std", "mc_at", "mc_bind", "facade"};
  const std::string member = absent_member(message);
  const bool is_listed = message.find(kOfCuda) == std::string::npos;
  if (!member.empty() && is_listed && is_made_up(member)) return true;
  if (is_number_as_tensor(message)) return true;
  bool is_ours = false;
  const std::string problem = message.substr(0, message.find("; did you mean "));
  for_each_identifier(problem, [&](std::string_view word) {
    is_ours |= is_one_of(word, kInner) || (is_one_of(word, kNamespaces) && word != "at");
  });
  // The words "identifier" and "expression" are names in PyTorch's headers, and words of the
  // compiler, too; so only quoted names count.
  for_each_identifier(quoted_in(problem),
                      [&](std::string_view word) { is_ours |= missing_.contains(word); });
  // The name "at" is an English word, too.
  is_ours |= problem.find("at::") != std::string::npos ||
             problem.find("\"at\"") != std::string::npos ||
             problem.find("'at'") != std::string::npos;
  return !is_ours;
}

Status write_missing_names(std::string_view full, std::string_view thin, const fs::path& path) {
  Names of_full;
  Names of_thin;
  add_declared_names(full, of_full);
  add_names(thin, of_thin);
  std::string text;
  for (const std::string& name : of_full) {
    // Names of one or two letters are left out: sizes, counters, and parameters that look like
    // declarations.
    if (name.size() >= kNameBytesMin && !of_thin.contains(name)) text += name + '\n';
  }
  Names others;
  add_names(full, others);
  text += kOthers;
  for (const std::string& name : others) {
    if (!of_full.contains(name) && !of_thin.contains(name)) text += name + '\n';
  }
  return write_file_atomically(path, text);
}

std::string includes_for(const std::vector<std::string>& texts) {
  std::set<std::string_view> headers;
  bool halves = false;
  for (const std::string& text : texts) {
    const Words words(text);
    for (size_t i = 0; i < words.tokens.size(); ++i) {
      if (!words.is_identifier(i)) continue;
      const std::string_view word = words.at(i);
      halves |= word.find("half") != std::string_view::npos ||
                word.find("bfloat16") != std::string_view::npos;
      for (const Home& home : kHomes) {
        const bool is_macro = std::isupper(static_cast<unsigned char>(word.front())) != 0;
        const bool is_std = i > 1 && words.at(i - 1) == "::" && words.at(i - 2) == "std";
        if ((is_macro || is_std || word == "assert") && holds_word(home.names, word)) {
          headers.insert(home.header);
        }
      }
    }
  }
  std::string includes;
  for (const std::string_view header : headers)
    includes += "#include <" + std::string(header) + ">\n";
  if (halves) includes += "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n";
  return includes;
}

}  // namespace mc::compile
