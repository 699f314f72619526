// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dialect.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/text.h"
#include "eval/musa_branches.h"
#include "eval/musa_dead_python.h"
#include "eval/musa_headers.h"
#include "eval/musa_own_words.h"
#include "eval/musa_warps.h"
#include "legality/extract.h"
#include "lex/token.h"
#include "musify/port.h"
#include "task/musa_device.h"
#include "task/verdict_fields.h"

namespace mc::eval {
namespace {

constexpr std::size_t kFindingsMax = 32;
constexpr std::size_t kExcerptBytesMax = 200;
constexpr std::string_view kExclusion = "MUSIFY_EXCL";
constexpr std::string_view kMatrices = "mtmusa";

std::size_t line_of(std::string_view text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(offset);
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

musify::Location location_of(std::string_view text, std::size_t offset) {
  const std::size_t end = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  return {line_of(text, offset), offset - (end == std::string_view::npos ? 0 : end + 1) + 1};
}

// The line's text; empty for a line that does not exist.
std::string excerpt_of(const std::vector<std::string_view>& lines, std::size_t line) {
  if (line < 1 || line > lines.size()) return "";
  return std::string(lines[line - 1].substr(0, kExcerptBytesMax));
}

// Maps a position in a text to a source location of the evidence.
using Locator = std::function<task::SourceLocation(const musify::Location&)>;

Locator locator_in(const std::vector<std::string_view>& lines) {
  return [&lines](const musify::Location& position) {
    return task::SourceLocation{"candidate", static_cast<int>(position.line),
                                static_cast<int>(position.column),
                                excerpt_of(lines, position.line)};
  };
}

// The word of a port's change, without the white space, quotes and brackets around it.
std::string bare(std::string_view text) { return std::string(trimmed(text, " \t\r\n,\"<>'\\")); }

// The name that a remnant is about.
std::string name_of(const musify::Finding& remnant) {
  return remnant.message.substr(0, remnant.message.find(' '));
}

// True where a module contains the word outside of comments.
bool is_written(std::string_view module, std::string_view word) {
  return std::ranges::any_of(musify::python_words(module), [&](const musify::Word& one) {
    return contains_word(one.text, word);
  });
}

// A construct that mcc accepts and no port to CUDA has.
struct Lacking {
  std::regex pattern;
  std::string rule, message;
};

const std::vector<Lacking>& lacking() {
  static const std::vector<Lacking> kLacking = {
      {std::regex(R"(\b(vector_size|ext_vector_type)\s*\()"), "dialect.vector_types",
       "vector types of Clang in device code have no port to CUDA"},
      {std::regex(R"(\bfragment\s*<[^>]*\b16\s*,\s*16\s*,\s*32\b)"), "dialect.wide_matrices",
       "products of matrices of 16x16x32 have no port to CUDA"}};
  return kLacking;
}

// Collects the words that the port to MUSA would change, since these are not MUSA words; each once.
class Unported {
 public:
  // `written` is the candidate's own text.
  Unported(std::string_view written, const musify::Rules& to_musa)
      : written_(written), to_musa_(to_musa) {}

  // Exempts the words at these offsets of the next text.
  void allow(std::string_view text, const std::set<std::size_t>& offsets) {
    allowed_.clear();
    std::size_t line = 1;
    std::size_t start = 0;
    for (const std::size_t offset : offsets) {
      for (std::size_t end = text.find('\n', start); end < offset; end = text.find('\n', start)) {
        start = end + 1;
        ++line;
      }
      allowed_.emplace(line, offset - start + 1);
    }
  }

  void add(const musify::Port& port, const Locator& locate) {
    for (const musify::Finding& refusal : port.refusals) {
      const std::string message = fmt::format("{} (dialect.{})", refusal.message, refusal.rule);
      found_.push_back({"error", message, locate(refusal.location)});
    }
    for (const musify::Change& change : port.changes) {
      const std::string word = bare(change.before);
      if (allowed_.contains({change.location.line, change.location.column})) continue;
      if (word.empty() || !seen_.insert(word).second) continue;
      add(word, change.after, locate(change.location));
    }
    for (const musify::Finding& remnant : port.remnants) {
      const std::string word = name_of(remnant);
      // Names may be the candidate's own.
      const bool is_header = word.find('.') != std::string::npos;
      if (is_header && seen_.insert(word).second) add(word, "", locate(remnant.location));
    }
  }

  // Adds flags of nvcc, also those that the module assembled.
  void add_flags(const std::vector<std::string>& flags, const std::string& keyword) {
    for (const musify::Rule& rule : to_musa_.rules) {
      if (rule.kind != musify::Rule::Kind::kFlag || !rule.keywords.contains(keyword)) continue;
      for (const std::string& flag : flags) add_flag(flag, rule);
    }
  }

  // Adds architectures that mcc does not have, and CUDA words in the values of -D.
  void add_values(const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const std::string value = flag.substr(std::min(flag.find('='), flag.size() - 1) + 1);
      const bool names_architecture =
          flag.starts_with("--offload-arch=") || flag.starts_with("--cuda-gpu-arch=");
      const std::vector<std::string> known = musify::architectures();
      if (names_architecture && std::ranges::find(known, value) == known.end()) {
        if (seen_.insert(flag).second) add(flag, "--offload-arch=mp_31", location_of_flag(flag));
      }
      if (!flag.starts_with("-D")) continue;
      const musify::Port port =
          musify::port_source(value, musify::Language::kCpp, to_musa_, musify::PortOptions());
      add(port, [&](const musify::Location&) { return location_of_flag(flag); });
    }
  }

  // Adds the imports of torch.utils.musa_extension, which only torch_musa has as its own module.
  void add_missing_module(const Locator& locate) {
    static constexpr std::string_view kMissing[] = {"torch", ".", "utils", ".", "musa_extension"};
    static constexpr std::string_view kImport[] = {"torch", ".", "utils", "import",
                                                   "musa_extension"};
    const std::vector<musify::Word> words = musify::python_words(written_);
    for (const auto& missing : {std::span(kMissing), std::span(kImport)}) {
      const auto found = std::ranges::search(words, missing, {}, &musify::Word::text);
      if (found.empty()) continue;
      found_.push_back({"error",
                        "\"torch.utils.musa_extension\" does not exist on MUSA: write "
                        "\"torch_musa.utils.musa_extension\" (dialect.python)",
                        locate(location_of(written_, found.front().offset))});
    }
  }

  // Adds types that the MUSA headers define only from a later architecture on.
  void add_missing_types(const std::string& source, const std::string& architecture,
                         const Locator& locate) {
    constexpr int kFirstWithBfloat16 = 220;
    if (task::architecture_number(architecture) >= kFirstWithBfloat16) return;
    for (const lex::Token& token : lex::tokenize(source)) {
      const std::string_view name = lex::text_of(source, token);
      const bool is_bfloat16 = name == "__mt_bfloat16" || name == "mt_bfloat16" ||
                               name == "__mt_bfloat162" || name == "mt_bfloat162";
      if (!is_bfloat16 || !seen_.insert(std::string(name)).second) continue;
      found_.push_back({"error",
                        fmt::format("\"{}\" needs mp_22: <musa_bf16.h> does not define it for {} "
                                    "(dialect.architecture)",
                                    name, architecture),
                        locate({token.line, token.column})});
    }
  }

  // Adds attributes that a string names.
  void add_attributes(const OwnWords& own, const Locator& locate) {
    for (const auto& [offset, word] : own.attributes()) {
      if (!seen_.insert(word).second) continue;
      const std::size_t at = word.find("cuda");
      add(word, word.substr(0, at) + "musa" + word.substr(at + 4),
          locate(location_of(written_, offset)));
    }
  }

  // Adds kernel launches in text for the host compiler.
  void add_launches(const std::string& source, const Locator& locate) {
    for (const lex::Token& token : lex::tokenize(source)) {
      if (token.kind != lex::Kind::kLaunchOpen) continue;
      found_.push_back({"error",
                        "a kernel launch in C++ that the compiler of the host gets: put it into "
                        "musa_sources or a file that ends in .mu (dialect.cuda)",
                        locate({token.line, token.column})});
      return;
    }
  }

  // Adds keywords that torch_musa's load_inline lacks, as items of a dictionary.
  void add_keywords(const Locator& locate) {
    for (const musify::Word& word : musify::python_words(written_)) {
      if (word.kind != musify::Word::Kind::kString || !is_dropped_keyword(word.text)) continue;
      if (seen_.insert(word.text).second) {
        add(word.text, "", locate({line_of(written_, word.offset), 1}));
      }
    }
  }

  void add_missing_header(const MissingHeader& missing, const task::SourceLocation& location) {
    if (!seen_.insert(std::string(missing.name)).second) return;
    found_.push_back({"error",
                      fmt::format("\"{}\" needs \"{}\", which load_inline of torch_musa does not "
                                  "include by itself (dialect.header)",
                                  missing.name, missing.header),
                      location});
  }

  void add_exclusion(const task::SourceLocation& location) {
    found_.push_back({"error",
                      "the marks of musify that exclude lines are not for candidates: write the "
                      "lines for MUSA, or leave them out (dialect.cuda)",
                      location});
  }

  std::optional<task::Outcome> outcome() {
    if (found_.empty()) return std::nullopt;
    if (found_.size() > kFindingsMax) found_.resize(kFindingsMax);
    return task::CompileFailed{std::move(found_)};
  }

 private:
  void add(const std::string& word, const std::string& change, task::SourceLocation location) {
    found_.push_back({"error", message_of(word, change), std::move(location)});
  }

  bool is_dropped_keyword(const std::string& name) const {
    return std::ranges::any_of(to_musa_.rules, [&](const musify::Rule& rule) {
      return rule.kind == musify::Rule::Kind::kKeyword &&
             std::ranges::find(rule.dropped, name) != rule.dropped.end();
    });
  }

  void add_flag(const std::string& flag, const musify::Rule& rule) {
    const bool is_dropped = std::ranges::any_of(
        rule.dropped, [&](const std::string& pattern) { return musify::matches(pattern, flag); });
    const auto pair = std::ranges::find(rule.pairs, flag, &musify::Pair::from);
    const bool is_changed = pair != rule.pairs.end() && !is_written(written_, pair->to);
    if (!is_dropped && !is_changed) return;
    if (seen_.insert(flag).second) add(flag, is_changed ? pair->to : "", location_of_flag(flag));
  }

  // The first line of the module that contains the flag, if it is written in one piece.
  task::SourceLocation location_of_flag(const std::string& flag) const {
    const std::size_t at = written_.find(flag);
    if (at == std::string_view::npos) return {};
    const std::vector<std::string_view> lines = lines_of(written_);
    return locator_in(lines)({line_of(written_, at), 1});
  }

  static std::string message_of(const std::string& word, const std::string& change) {
    const std::string after = bare(change.substr(0, change.find(" as ")));
    if (after.empty()) {
      return fmt::format(
          "\"{}\" is of CUDA and has no counterpart on MUSA: leave it out (dialect.cuda)", word);
    }
    return fmt::format("\"{}\" is of CUDA and does not exist on MUSA: write \"{}\" (dialect.cuda)",
                       word, after);
  }

  std::string_view written_;
  const musify::Rules& to_musa_;
  std::set<std::pair<std::size_t, std::size_t>> allowed_;  // Lines and columns.
  std::set<std::string> seen_;
  std::vector<task::Diagnostic> found_;
};

void add_unknown(const std::vector<musify::Finding>& remnants, const Locator& locate,
                 task::Unsupported& unsupported) {
  for (const musify::Finding& remnant : remnants) {
    if (unsupported.constructs.size() == kFindingsMax) return;
    unsupported.constructs.push_back(
        {"dialect.unknown",
         fmt::format("\"{}\" looks like a name of MUSA, and this verifier knows no name of CUDA to "
                     "judge it by: use another one if there is one",
                     name_of(remnant)),
         locate(remnant.location)});
  }
}

// A module that imports torchada has the names of CUDA on MUSA, too.
std::optional<task::Outcome> under_torchada(const std::string& module, const Locator& locate) {
  const std::vector<musify::Word> words = musify::python_words(module);
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool is_import = words[i - 1].text == "import" || words[i - 1].text == "from";
    if (!is_import || words[i].text != "torchada") continue;
    const task::SourceLocation location = locate(location_of(module, words[i].offset));
    return task::Unsupported{
        {{"dialect.torchada",
          "torchada lets programs for CUDA run on MUSA: judge this one without the import, with "
          "--dialect cuda",
          location}}};
  }
  return std::nullopt;
}

// The separate flags of items that may contain several.
std::vector<std::string> words_of(const std::vector<std::string>& items) {
  std::vector<std::string> words;
  for (const std::string& item : items) {
    std::istringstream stream(item);
    for (std::string word; stream >> word;) words.push_back(word);
  }
  return words;
}

// A text of an extension, with the name that diagnostics give it.
struct Source {
  std::string name;
  std::string* text;
};

std::vector<Source> sources_of(std::vector<compile::Extension>& extensions) {
  std::vector<Source> sources;
  const auto add = [&](const char* list, std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      sources.push_back({fmt::format("{}[{}]", list, i), &texts[i]});
    }
  };
  for (compile::Extension& extension : extensions) {
    add("cpp_sources", extension.cpp_sources);
    add("cuda_sources", extension.cuda_sources);
    for (compile::SourceFile& file : extension.files) sources.push_back({file.name, &file.text});
  }
  return sources;
}

// The names that the sources define for each other, and the files that they include.
musify::Project project_of(const std::vector<Source>& sources,
                           const std::vector<compile::Extension>& extensions) {
  musify::Project project;
  for (const Source& source : sources) {
    project.names.merge(
        musify::names_defined_in(musify::units_of(*source.text, musify::Language::kCpp, {})));
  }
  for (const compile::Extension& extension : extensions) {
    for (const compile::SourceFile& file : extension.files) {
      project.files.insert(file.name.substr(file.name.rfind('/') + 1));
    }
  }
  return project;
}

std::vector<std::string> includes_of(const std::vector<Source>& sources) {
  std::vector<std::string> headers;
  for (const Source& source : sources) add_includes(*source.text, headers);
  return headers;
}

// The compiler passes over a source; a header may be read by any compiler.
std::vector<Macros> passes_over(const std::string& name, const std::string& architecture) {
  constexpr std::string_view kArchitecture = "__MUSA_ARCH__";
  const Macros host = {{kArchitecture, std::nullopt}};
  const Macros device = {{kArchitecture, task::architecture_number(architecture)}};
  if (name.starts_with("cpp_sources")) return {host};
  std::vector<Macros> passes = {host, device};
  if (!name.starts_with("cuda_sources")) return passes;
  for (Macros& macros : passes) macros.insert({{"__MUSACC__", 1}, {"__MUSA__", 1}});
  return passes;
}

// The message without a suggestion that repeats the word: "'musaX' was not declared; did you mean
// 'musaX'?".
std::string without_echo(const std::string& message) {
  constexpr std::string_view kMark = "; did you mean '";
  const std::size_t mark = message.find(kMark);
  if (mark == std::string::npos) return message;
  const std::size_t begin = mark + kMark.size();
  const std::string word = message.substr(begin - 1, message.find('\'', begin) + 2 - begin);
  return message.find(word) < mark ? message.substr(0, mark) : message;
}

// Visits the fields of a verdict.  Names change only in members that contain prose.
class Restorer {
 public:
  Restorer(const musify::Rules& to_musa, const std::vector<std::string_view>& lines)
      : to_musa_(to_musa), lines_(lines) {}

  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (is_prose(name)) value = prose(value);
    } else {
      restore(value);
    }
  }

 private:
  static bool is_prose(std::string_view name) {
    static const std::set<std::string_view> kProse = {"message", "detail", "output_tail"};
    return kProse.contains(name);
  }

  std::string prose(const std::string& text) const {
    return without_warps_of_128(
        without_stand_ins(without_echo(musify::port_message(text, to_musa_))));
  }

  void restore(task::SourceLocation& location) {
    if (location.source == "candidate") {
      const auto line = static_cast<std::size_t>(std::max(location.line, 0));
      if (!location.excerpt.empty()) location.excerpt = excerpt_of(lines_, line);
      return;
    }
    location.source = musify::port_message(location.source, to_musa_);
    location.excerpt =
        without_warps_of_128(without_stand_ins(musify::port_message(location.excerpt, to_musa_)));
  }
  void restore(task::Outcome& outcome) {
    std::visit([this](auto& value) { task::fields(*this, value); }, outcome);
  }
  template <typename T>
  void restore(std::vector<T>& values) {
    if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      for (T& value : values) restore(value);
    }
  }
  template <typename T>
  void restore(std::optional<T>& value) {
    if (value) restore(*value);
  }
  template <typename Key, typename Value>
  void restore(std::map<Key, Value>&) {}
  template <typename T>
  void restore(T& value) {
    if constexpr (requires { task::fields(*this, value); }) task::fields(*this, value);
  }

  const musify::Rules& to_musa_;
  const std::vector<std::string_view>& lines_;
};

bool is_for_musa_alone(const std::string& flag) {
  static constexpr const char* kPatterns[] = {
      "--offload-arch=*", "--cuda-gpu-arch=*", "-mtgpu*",    "-Od*",   "-fmusa-*",
      "-mathx-*",         "-fsigned-char",     "-U__CUDA__", "-mllvm", "-x"};
  return std::ranges::any_of(kPatterns,
                             [&](const char* pattern) { return musify::matches(pattern, flag); });
}

std::string nvcc_flag(const std::string& flag) {
  if (flag == "-ffast-math") return "--use_fast_math";
  const bool is_of_host =
      flag.starts_with("-f") || flag.starts_with("-W") || flag.starts_with("-m");
  return is_of_host ? "-Xcompiler=" + flag : flag;
}

}  // namespace

MusaDialect::MusaDialect(musify::Rules to_musa, musify::Rules to_cuda)
    : to_musa_(std::move(to_musa)), to_cuda_(std::move(to_cuda)) {}

Result<MusaDialect> MusaDialect::create(const std::filesystem::path& folder) {
  MC_TRY(musify::Rules to_musa, musify::load_rules(folder, musify::Target::kMusa), "dialect");
  MC_TRY(musify::Rules to_cuda, musify::load_rules(folder, musify::Target::kCuda), "dialect");
  to_musa.suffixes.clear();  // File names of a candidate stay.
  to_cuda.suffixes.clear();
  return MusaDialect(std::move(to_musa), std::move(to_cuda));
}

std::variant<std::string, task::Outcome> MusaDialect::port(std::string_view module,
                                                           const std::string& architecture) const {
  const std::vector<std::string_view> lines = lines_of(module);
  const Locator locate = locator_in(lines);
  const std::string live = live_python(module);
  Unported unported(live, to_musa_);
  if (const std::size_t at = module.find(kExclusion); at != std::string_view::npos) {
    unported.add_exclusion(locate({line_of(module, at), 1}));
    return *unported.outcome();
  }
  if (auto outcome = under_torchada(live, locate)) return *outcome;
  const musify::PortOptions options{.architecture = architecture,
                                    .embedded = musify::Embedded::kLiterals,
                                    .lines = musify::Lines::kStay,
                                    .project = {}};
  const OwnWords own(live);
  unported.allow(live, own.allowed());
  unported.add(musify::port_source(live, musify::Language::kPython, to_musa_, options), locate);
  unported.add_keywords(locate);
  unported.add_missing_module(locate);
  unported.add_attributes(own, locate);
  if (auto outcome = unported.outcome()) return *outcome;
  musify::Port port =
      musify::port_source(own.with_stand_ins(), musify::Language::kPython, to_cuda_, options);
  if (port.remnants.empty()) return std::move(port.text);
  task::Unsupported unsupported;
  add_unknown(port.remnants, locate, unsupported);
  return unsupported;
}

void MusaDialect::undo_port(std::vector<compile::Extension>& extensions,
                            std::string_view module) const {
  const OwnWords own(module);
  for (const Source& source : sources_of(extensions)) *source.text = own.as_written(*source.text);
  const auto undo = [](std::string& text) { text = without_stand_ins(text); };
  for (compile::Extension& extension : extensions) {
    undo(extension.name);
    for (auto& [name, documentation] : extension.functions) {
      undo(name);
      undo(documentation);
    }
    for (compile::SourceFile& file : extension.files) undo(file.name);
    for (auto* flags :
         {&extension.extra_cflags, &extension.extra_cuda_cflags, &extension.extra_ldflags}) {
      std::ranges::for_each(*flags, undo);
    }
  }
}

std::optional<task::Outcome> MusaDialect::port_sources(std::vector<compile::Extension>& extensions,
                                                       std::string_view module,
                                                       const compile::LocationMapper& mapper,
                                                       const std::string& architecture) const {
  const std::vector<std::string_view> lines = lines_of(module);
  const std::vector<Source> sources = sources_of(extensions);
  const musify::PortOptions options{.architecture = architecture,
                                    .lines = musify::Lines::kStay,
                                    .project = project_of(sources, extensions)};
  const std::vector<std::string> headers = includes_of(sources);
  Unported unported(module, to_musa_);
  task::Unsupported unsupported;
  for (const compile::Extension& extension : extensions) {
    unported.add_flags(words_of(extension.extra_cuda_cflags), "extra_musa_cflags");
    unported.add_flags(words_of(extension.extra_ldflags), "extra_ldflags");
    unported.add_values(words_of(extension.extra_cuda_cflags));
    unported.add_values(words_of(extension.extra_cflags));
  }
  for (const Source& source : sources) {
    const Locator locate = [&](const musify::Location& position) {
      task::SourceLocation location = mapper.map(source.name, static_cast<int>(position.line),
                                                 static_cast<int>(position.column));
      if (location.source == "candidate") {
        location.excerpt = excerpt_of(lines, static_cast<std::size_t>(location.line));
      } else {
        location.source = musify::port_message(location.source, to_musa_);
      }
      return location;
    };
    if (const std::size_t at = source.text->find(kExclusion); at != std::string::npos) {
      unported.add_exclusion(locate({line_of(*source.text, at), 1}));
    }
    const std::string text =
        without_dead_branches(*source.text, passes_over(source.name, architecture));
    unported.allow(text, allowed_in(text));
    unported.add(musify::port_source(text, musify::Language::kCpp, to_musa_, options), locate);
    for (const MissingHeader& missing : missing_headers(text, headers)) {
      if (options.project.names.contains(missing.name)) continue;
      unported.add_missing_header(missing, locate({missing.line, missing.column}));
    }
    unported.add_missing_types(text, architecture, locate);
    if (source.name.starts_with("cpp_sources")) unported.add_launches(text, locate);
    musify::PortOptions back = options;
    back.project.names.merge(std::set<std::string, std::less<>>{
        "__MUSA_ARCH__", "__MUSACC__", "__MUSA__"});  // The macros of musa_prelude.
    musify::Port port =
        musify::port_source(with_stand_ins_in(text), musify::Language::kCpp, to_cuda_, back);
    add_unknown(port.remnants, locate, unsupported);
    for (const Lacking& one : lacking()) {
      std::smatch found;
      if (!std::regex_search(text, found, one.pattern)) continue;
      unsupported.constructs.push_back(
          {one.rule, one.message,
           locate(location_of(text, static_cast<std::size_t>(found.position())))});
    }
    const bool is_wide = task::warp_threads(task::Dialect::kMusa, architecture) != 32;
    if (const std::size_t at = text.find(kMatrices); is_wide && at != std::string::npos) {
      unsupported.constructs.push_back(
          {"dialect.wide_matrices",
           "products of matrices (wmma) are judged with --musa-arch mp_31 alone: how a warp of 128 "
           "threads shares a fragment is not known",
           locate(location_of(text, at))});
    }
    *source.text = std::move(port.text);
  }
  if (auto outcome = unported.outcome()) return outcome;
  if (!unsupported.constructs.empty()) return unsupported;
  return std::nullopt;
}

std::string MusaDialect::to_cuda(std::string_view text) const {
  musify::PortOptions options;
  options.lines = musify::Lines::kStay;
  return musify::port_source(text, musify::Language::kCpp, to_cuda_, options).text;
}

void MusaDialect::restore(task::Verdict& verdict, const task::Candidate& candidate) const {
  if (verdict.protocol.dialect != task::Dialect::kMusa) return;
  const legality::Extraction extraction = legality::extract(candidate.answer);
  const auto* extracted = std::get_if<legality::Extracted>(&extraction);
  if (extracted == nullptr) return;
  const std::vector<std::string_view> lines = lines_of(extracted->module);
  Restorer restorer(to_musa_, lines);
  restorer("outcome", verdict.outcome);
  restorer("telemetry", verdict.telemetry);
}

std::vector<std::string> nvcc_flags(const std::vector<std::string>& mcc_flags) {
  std::vector<std::string> flags;
  bool is_value = false;  // True for the value of a flag that is left out.
  for (const std::string& flag : words_of(mcc_flags)) {
    const bool is_left_out = is_value || is_for_musa_alone(flag);
    is_value = !is_value && (flag == "-mllvm" || flag == "-x");
    if (!is_left_out) flags.push_back(nvcc_flag(flag));
  }
  return flags;
}

std::vector<std::string> flags_of_mcc() {
  return {"--extended-lambda", "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF2_OPERATORS__",
          "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__"};
}

std::vector<std::string> mcc_flags(const std::vector<std::string>& passed,
                                   const std::vector<std::string>& given) {
  constexpr std::string_view kHost = "-Xcompiler=";
  std::vector<std::string> flags;
  for (const std::string& flag : passed) {
    const bool is_fast_math = flag == "--use_fast_math" || flag == "-use_fast_math";
    flags.push_back(is_fast_math              ? "-ffast-math"
                    : flag.starts_with(kHost) ? flag.substr(kHost.size())
                                              : flag);
  }
  for (const std::string& item : given) {
    std::istringstream words(item);
    for (std::string flag; words >> flag;) {
      static constexpr const char* kTuning[] = {"-mtgpu*", "-Od*", "-fmusa-*", "-mathx-*",
                                                "-fsigned-char"};
      if (std::ranges::any_of(
              kTuning, [&](const char* pattern) { return musify::matches(pattern, flag); })) {
        flags.push_back(flag);
      }
    }
  }
  return flags;
}

std::string cuda_link_flag(const std::string& flag) {
  for (const auto& [musa, cuda] : {std::pair("-lmusa", "-lcuda"), std::pair("-lmu", "-lcu")}) {
    if (flag.starts_with(musa)) return cuda + flag.substr(std::string_view(musa).size());
  }
  return flag;
}

std::string musa_prelude(const std::string& architecture) {
  return fmt::format(
      "#define __MUSACC__ 1\n"
      "#define __MUSA__ 1\n"
      "#ifdef __CUDA_ARCH__\n"
      "#define __MUSA_ARCH__ {}\n"
      "#endif\n"
      "#define __syncthreads_lm() __syncthreads()\n",
      task::architecture_number(architecture));
}

}  // namespace mc::eval
