// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  An error is *a lack* where it says that something does not exist, and what
// it names is in the list.  What was to be declared with it does not exist either, so further
// errors follow: an error is *explained* where its line holds a name that does not exist because of
// a lack.  Such a name is one of the lacks, or one that a compiler's message calls undeclared and
// that stands in the line of an error that is explained already.  This is repeated until nothing
// changes.
#include "compile/cpu_lacks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>
#include <system_error>

#include "core/file.h"
#include "lex/token.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kListBytesMax = 4 << 20;
constexpr size_t kHeaderBytesMax = 4 << 20;
constexpr std::string_view kNoFile = ": No such file or directory";
constexpr std::string_view kRule = "cpu.unsupported";

// The namespaces of CUDA's libraries.
constexpr std::array<std::string_view, 8> kRoots = {
    "cuda", "cub", "thrust", "nvcuda", "wmma", "cooperative_groups", "cg", "nvstd"};

// The folders where PyTorch keeps what it has for CUDA, and the namespaces of it.
constexpr std::array<std::string_view, 4> kPyTorchFolders = {"ATen/cuda", "ATen/native/cuda",
                                                             "c10/cuda", "torch/csrc/cuda"};
constexpr std::array<std::string_view, 4> kPyTorchScopes = {"at::cuda", "c10::cuda", "torch::cuda",
                                                            "at::native"};

// Libraries that the backend has a part of, by their namespaces, and the headers that bring them.
struct Library {
  std::string_view scope;
  std::array<std::string_view, 2> headers;  // Parts of their names.
};
constexpr std::array<Library, 8> kLibraries = {{{"cooperative_groups", {"cooperative_groups"}},
                                                {"cg", {"cooperative_groups"}},
                                                {"cub", {"cub", "thrust"}},
                                                {"thrust", {"thrust", "cub"}},
                                                {"nvcuda", {"mma.h"}},
                                                {"wmma", {"mma.h"}},
                                                {"cuda", {"cuda/", "cub"}},
                                                {"nvstd", {"nvfunctional"}}}};

// How compilers and linkers say that something does not exist.
constexpr std::array<std::string_view, 12> kMissing = {
    "was not declared",   "has not been declared", "not declared in", "does not name a",
    "is not a member of", "has no member named",   "is not a class",  "is not a namespace",
    "is not a type",      "undefined reference",   "is not declared", "there are no arguments to"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

using Words = std::set<std::string, std::less<>>;

Words words_of(std::string_view text) {
  Words words;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    while (i < text.size() && is_word(text[i])) ++i;
    if (i > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      words.emplace(text.substr(begin, i - begin));
    }
    if (i == begin) ++i;
  }
  return words;
}

// The words that a message quotes, in order: by '...' or `...'.
std::vector<std::string> quoted_in(std::string_view message) {
  std::vector<std::string> quoted;
  for (size_t i = message.find_first_of("'`"); i != std::string_view::npos;) {
    const size_t end = message.find('\'', i + 1);
    if (end == std::string_view::npos) break;
    quoted.emplace_back(message.substr(i + 1, end - i - 1));
    i = message.find_first_of("'`", end + 1);
  }
  return quoted;
}

bool contains_any(std::string_view text, const auto& parts) {
  return std::ranges::any_of(parts,
                             [&](auto part) { return text.find(part) != std::string_view::npos; });
}

bool holds_one_of(const Words& words, const auto& wanted) {
  return std::ranges::any_of(wanted, [&](const auto& word) { return words.contains(word); });
}

// Suggestions are not part of what is missing.
std::string_view without_suggestion(std::string_view message) {
  return message.substr(0, message.find("; did you mean"));
}

// True if a source says `using namespace` of one of CUDA's libraries.
bool opens_library(const Extension& extension) {
  const auto opens = [](const std::string& text) {
    constexpr std::string_view kUsing = "using namespace";
    for (size_t at = text.find(kUsing); at != std::string::npos; at = text.find(kUsing, at + 1)) {
      const size_t end = std::min(text.find(';', at), text.size());
      if (holds_one_of(words_of(std::string_view(text).substr(at, end - at)), kRoots)) return true;
    }
    return false;
  };
  return std::ranges::any_of(extension.cuda_sources, opens) ||
         std::ranges::any_of(extension.cpp_sources, opens) ||
         std::ranges::any_of(extension.files,
                             [&](const SourceFile& file) { return opens(file.text); });
}

// True if a source includes a header whose name holds the word.
bool includes(const Extension& extension, std::string_view word) {
  const auto has = [&](const std::string& text) {
    constexpr std::string_view kInclude = "include";
    for (size_t at = text.find(kInclude); at != std::string::npos;
         at = text.find(kInclude, at + 1)) {
      const std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
      if (line.find(word) != std::string_view::npos) return true;
    }
    return false;
  };
  return std::ranges::any_of(extension.cuda_sources, has) ||
         std::ranges::any_of(extension.cpp_sources, has) ||
         std::ranges::any_of(extension.files,
                             [&](const SourceFile& file) { return has(file.text); });
}

// True for a library of CUDA's that no source includes: nvcc refuses it as well.
bool is_forgotten(const Extension& extension, std::string_view scope) {
  const auto* library = std::ranges::find(kLibraries, scope, &Library::scope);
  return library != kLibraries.end() &&
         std::ranges::none_of(library->headers, [&](std::string_view header) {
           return !header.empty() && includes(extension, header);
         });
}

// The namespace and name of a type as g++ quotes it: "std::tuple" of "class std::tuple<int>".
std::string_view name_of_type(std::string_view quoted) {
  quoted = quoted.substr(0, quoted.find('<'));
  const size_t space = quoted.find_last_of(" ");
  return space == std::string_view::npos ? quoted : quoted.substr(space + 1);
}

struct Lack {
  std::string name;
  std::string described;
};

class Judgement {
 public:
  Judgement(const FailedSource& source, const CudaNames& names)
      : source_(source),
        names_(names),
        takes_scoped_(!source.headers.empty() || opens_library(source.extension)) {}

  // The name that the error is a lack of.
  std::optional<Lack> lack_in(const task::Diagnostic& error) const {
    for (const task::RuleFinding& construct : source_.constructs) {
      if (!error.location.source.empty() && construct.location.source == error.location.source &&
          construct.location.line == error.location.line) {
        return Lack{"", construct.message};
      }
    }
    const std::string_view message = without_suggestion(error.message);
    if (!contains_any(message, kMissing)) return std::nullopt;
    const std::vector<std::string> quoted = quoted_in(message);
    if (quoted.empty()) return std::nullopt;
    const bool is_member = message.find("has no member named") != std::string_view::npos;
    if (is_member) return member_lack(quoted);
    const bool is_in_library = takes_scoped_ ||
                               holds_one_of(words_of(error.location.excerpt), kRoots) ||
                               holds_one_of(words_of(message), kRoots);
    for (const std::string& word : words_of(quoted.front())) {
      if (is_forgotten(source_.extension, word)) return std::nullopt;
      const bool is_cuda = names_.has_global(word) ||
                           (is_in_library && (names_.has_scoped(word) ||
                                              std::ranges::find(kRoots, word) != kRoots.end()));
      if (is_cuda) return described(word, "CUDA");
      const bool is_pytorch = contains_any(message, kPyTorchScopes) ||
                              (error.location.excerpt.find("cuda::") != std::string::npos) ||
                              word.starts_with("C10_");
      if (is_pytorch && names_.only_pytorch_has(word)) return described(word, "PyTorch");
    }
    return std::nullopt;
  }

 private:
  static Lack described(const std::string& word, std::string_view whose) {
    return {word, std::string(whose) + " has '" + word + "', the CPU backend does not"};
  }

  // "'struct cudaDeviceProp' has no member named 'luid'": of a type of CUDA's or PyTorch's, or of
  // what its alias stands for, which is quoted behind it.
  std::optional<Lack> member_lack(const std::vector<std::string>& quoted) const {
    const std::string& member = quoted.back();
    for (size_t i = 0; i + 1 < quoted.size(); ++i) {
      const std::string_view type = name_of_type(quoted[i]);
      const size_t scope = type.find("::");
      const bool is_of_cuda =
          scope == std::string_view::npos
              ? names_.has_global(type)
              : std::ranges::find(kRoots, type.substr(0, scope)) != kRoots.end();
      if (is_of_cuda && (names_.has_member(member) || names_.has_scoped(member))) {
        return described(member, "CUDA");
      }
      if (contains_any(type, kPyTorchScopes) && names_.only_pytorch_has(member)) {
        return described(member, "PyTorch");
      }
    }
    return std::nullopt;
  }

  const FailedSource& source_;
  const CudaNames& names_;
  bool takes_scoped_;  // Names of libraries may stand without their namespace.
};

// The name that a message calls undeclared, though no list has it.
std::string undeclared_in(const task::Diagnostic& error) {
  const std::string_view message = without_suggestion(error.message);
  if (!contains_any(message, kMissing)) return "";
  const std::vector<std::string> quoted = quoted_in(message);
  return quoted.empty() ? "" : quoted.front();
}

struct Error {
  const task::Diagnostic* diagnostic;
  Words line;              // The words of its line.
  std::string undeclared;  // The name that it calls undeclared.
  bool is_explained = false;
};

// Explains what follows from `missing`; true where something new was explained.
bool spread(std::vector<Error>& errors, Words& missing) {
  bool has_changed = false;
  for (Error& error : errors) {
    if (error.is_explained) continue;
    const Words said = words_of(without_suggestion(error.diagnostic->message));
    if (!holds_one_of(error.line, missing) && !holds_one_of(said, missing)) continue;
    error.is_explained = has_changed = true;
  }
  for (const Error& explained : errors) {
    if (!explained.is_explained) continue;
    for (const Error& other : errors) {
      const bool is_new = !other.undeclared.empty() && explained.line.contains(other.undeclared);
      if (is_new && missing.insert(other.undeclared).second) has_changed = true;
    }
  }
  return has_changed;
}

// True if one of PyTorch's headers for CUDA below `root` holds the word.
bool is_word_in(const fs::path& root, std::string_view word) {
  for (const std::string_view folder : kPyTorchFolders) {
    std::error_code failure;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder, failure)) {
      if (!entry.is_regular_file(failure)) continue;
      const auto text = read_file(entry.path(), kHeaderBytesMax);
      if (text && text->find(word) != std::string::npos && words_of(*text).contains(word)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<CudaNames> CudaNames::read(const fs::path& list, std::vector<fs::path> includes,
                                  fs::path own) {
  MC_TRY(const std::string text, read_file(list, kListBytesMax), "the names of CUDA");
  CudaNames names;
  names.includes_ = std::move(includes);
  names.own_ = std::move(own);
  Section* section = nullptr;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      section = line == "[headers]"   ? &names.headers_
                : line == "[global]"  ? &names.global_
                : line == "[scoped]"  ? &names.scoped_
                : line == "[members]" ? &names.members_
                                      : nullptr;
    } else if (section != nullptr) {
      section->insert(section->end(), line);
    }
  }
  return names;
}

bool CudaNames::only_pytorch_has(std::string_view name) const {
  const auto has = [&](const fs::path& include) { return is_word_in(include, name); };
  return !has(own_) && std::ranges::any_of(includes_, has);
}

std::vector<std::string> missing_headers(const std::vector<task::Diagnostic>& diagnostics,
                                         const CudaNames& names) {
  std::vector<std::string> missing;
  for (const task::Diagnostic& entry : diagnostics) {
    const size_t end = entry.message.find(kNoFile);
    if (entry.severity != "error" || end == std::string::npos) continue;
    const std::string header = entry.message.substr(0, end);
    if (names.has_header(header)) missing.push_back(header);
  }
  return missing;
}

task::Unsupported lacks_of(const std::vector<task::Diagnostic>& diagnostics,
                           const FailedSource& source, const CudaNames& names) {
  const Judgement judgement(source, names);
  task::Unsupported lacking;
  std::set<std::string> told;
  std::vector<Error> errors;
  Words missing;
  for (const task::Diagnostic& entry : diagnostics) {
    if (entry.severity != "error") continue;
    Error error{&entry, words_of(entry.location.excerpt), undeclared_in(entry)};
    if (const std::optional<Lack> lack = judgement.lack_in(entry)) {
      error.is_explained = true;
      if (!lack->name.empty()) missing.insert(lack->name);
      if (told.insert(lack->described).second) {
        lacking.constructs.push_back({std::string(kRule), lack->described, entry.location});
      }
    }
    errors.push_back(std::move(error));
  }
  if (lacking.constructs.empty()) return {};
  while (spread(errors, missing)) {
  }
  const bool all_explained =
      std::ranges::all_of(errors, [](const Error& error) { return error.is_explained; });
  return all_explained ? lacking : task::Unsupported{};
}

}  // namespace mc::compile
