// SPDX-License-Identifier: Apache-2.0
#include "compile/extension.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/text.h"
#include "lex/token.h"

namespace mc::compile {
namespace {

constexpr size_t kExcerptBytesMax = 200;

constexpr const char* kModuleFile = "candidate.py";  // The name in python/harness/worker/wire.py.
constexpr const char* kPrelude = "dialect";
constexpr const char* kBinding = "binding";  // The piece that is generated for the candidate.

using Json = nlohmann::json;

std::vector<std::string> strings_of(const Json& object, const char* member) {
  return object.value(member, std::vector<std::string>{});
}

// Replaces carriage returns by line feeds: compilers end a line at both, and the other parsers of
// this project need not.
std::string with_line_feeds(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      result += text[i];
    } else if (i + 1 == text.size() || text[i + 1] != '\n') {
      result += '\n';
    }
  }
  return result;
}

std::vector<std::string> sources_of(const Json& object, const char* member) {
  std::vector<std::string> sources = strings_of(object, member);
  for (std::string& source : sources) source = with_line_feeds(source);
  return sources;
}

size_t bytes_of(const Extension& extension) {
  size_t bytes = 0;
  for (const std::string& text : extension.cpp_sources) bytes += text.size();
  for (const std::string& text : extension.cuda_sources) bytes += text.size();
  for (const SourceFile& file : extension.files) bytes += file.text.size();
  return bytes;
}

bool is_plain_name(const std::string& name) {
  const bool safe = std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-' || c == '/';
  });
  return safe && !name.empty() && name.size() < 200 && name.front() != '/' &&
         name.find("..") == std::string::npos;
}

// Throws nlohmann's exceptions, which parse_extensions catches.
Extension extension_of(const Json& object) {
  Extension extension;
  extension.name = object.at("name").get<std::string>();
  extension.key = object.at("key").get<std::string>();
  extension.cpp_sources = sources_of(object, "cpp_sources");
  extension.cuda_sources = sources_of(object, "cuda_sources");
  extension.extra_cflags = strings_of(object, "extra_cflags");
  extension.extra_cuda_cflags = strings_of(object, "extra_cuda_cflags");
  extension.extra_ldflags = strings_of(object, "extra_ldflags");
  if (const auto functions = object.find("functions");
      functions != object.end() && functions->is_object()) {
    for (const auto& [name, doc] : functions->items()) {
      extension.functions.emplace_back(name, doc.get<std::string>());
    }
  }
  for (const Json& file : object.value("files", Json::array())) {
    extension.files.push_back(
        {file.at("name").get<std::string>(), with_line_feeds(file.at("text").get<std::string>())});
  }
  return extension;
}

// The reason why an extension cannot be built; "" where it can.
std::string why_unusable(const Extension& extension) {
  const auto no_name = [](const std::string& name) {
    return '"' + name.substr(0, kExcerptBytesMax) +
           "\" cannot be a name: give a short one of letters, digits and _";
  };
  const bool hex = extension.key.size() == 64 &&
                   extension.key.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hex) return "its key is no hash";
  if (!is_plain_name(extension.name)) return no_name(extension.name);
  if (const size_t bytes = bytes_of(extension); bytes > kSourceBytesMax) {
    return "its sources have " + std::to_string(bytes) + " bytes, more than " +
           std::to_string(kSourceBytesMax);
  }
  for (const SourceFile& file : extension.files) {
    if (!is_plain_name(file.name)) return no_name(file.name);
  }
  return "";
}

// A quoted C++ string literal.
std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') literal += '\\';
    if (c == '\n') {
      literal += "\\n";
    } else if (static_cast<unsigned char>(c) >= ' ') {
      literal += c;
    }
  }
  return literal + '"';
}

std::string binding_of(const Extension& extension) {
  MC_CHECK(!extension.functions.empty());
  std::string text = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n";
  for (const auto& [name, doc] : extension.functions) {
    text += "m.def(" + quoted(name) + ", &" + name + ", " + quoted(doc) + ");\n";
  }
  return text + "}\n";
}

std::vector<std::string> copied_lines_of(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  return {lines.begin(), lines.end()};
}

constexpr size_t kTellingBytesMin = 4;  // A shorter line does not identify its origin.
constexpr int kAlikeMax = 16;           // The bound on equal lines that identify an origin.

// The offset between piece lines and candidate lines on which most lines agree.
int offset_between(const std::vector<std::string>& piece,
                   const std::vector<std::string>& candidate) {
  std::multimap<std::string_view, int> places;
  for (size_t i = 0; i < candidate.size(); ++i) {
    if (candidate[i].size() >= kTellingBytesMin) places.emplace(candidate[i], static_cast<int>(i));
  }
  std::map<int, int> votes;
  for (size_t i = 0; i < piece.size(); ++i) {
    const auto [first, last] = places.equal_range(piece[i]);
    auto one_too_many = first;
    for (int n = 0; n <= kAlikeMax && one_too_many != last; ++n) ++one_too_many;
    if (one_too_many != last) continue;  // The line is too common to identify its origin.
    for (auto it = first; it != last; ++it) ++votes[it->second - static_cast<int>(i)];
  }
  int best = -1;
  int best_votes = 0;
  for (const auto& [offset, count] : votes) {
    if (count > best_votes && offset >= 0) {
      best = offset;
      best_votes = count;
    }
  }
  return best;
}

// The number of the only line with the excerpt; 0 where there is none, or several.
int only_line(const std::vector<std::string>& lines, const std::string& excerpt) {
  if (excerpt.size() < kTellingBytesMin) return 0;
  const auto is_it = [&](const std::string& line) {
    return line.compare(0, kExcerptBytesMax, excerpt) == 0;
  };
  const auto found = std::ranges::find_if(lines, is_it);
  if (found == lines.end() || std::find_if(found + 1, lines.end(), is_it) != lines.end()) return 0;
  return static_cast<int>(found - lines.begin()) + 1;
}

std::string excerpt_of(const std::vector<std::string>& lines, int line) {
  if (line < 1 || line > static_cast<int>(lines.size())) return "";
  return lines[static_cast<size_t>(line) - 1].substr(0, kExcerptBytesMax);
}

constexpr std::string_view kName = "TORCH_EXTENSION_NAME";
constexpr std::string_view kModule = "PYBIND11_MODULE";

bool is_identifier(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, is_word_byte);
}

// The use that a source makes of the name of its extension.
enum class NameUse { kNone, kBinds, kOtherwise };

NameUse name_use_in(std::string_view source, const std::string& name) {
  std::vector<lex::Token> tokens = lex::tokenize(source);
  std::erase_if(tokens, lex::is_trivia);
  const auto word = [&](size_t i) {
    return i < tokens.size() ? lex::text_of(source, tokens[i]) : std::string_view();
  };
  NameUse use = NameUse::kNone;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (word(i) == kModule && word(i + 1) == "(" && word(i + 2) == kName) {
      use = NameUse::kBinds;
      i += 2;
    } else if (word(i) == kModule || word(i) == kName ||
               word(i).find("PyInit") != std::string_view::npos ||
               (tokens[i].in_directive && (word(i) == name || word(i) == "##"))) {
      return NameUse::kOtherwise;
    }
  }
  return use;
}

}  // namespace

Result<std::vector<Extension>> parse_extensions(std::string_view recorder_answer) {
  try {
    std::vector<Extension> extensions;
    const Json answer = Json::parse(recorder_answer);
    for (const Json& object : answer.at("extensions")) {
      extensions.push_back(extension_of(object));
      if (const std::string why = why_unusable(extensions.back()); !why.empty()) {
        return Error{ErrorCode::kProtocol, "a recorded extension cannot be built: " + why};
      }
      if (extensions.size() > kExtensionsMax) {
        return Error{ErrorCode::kProtocol, "the candidate has more than " +
                                               std::to_string(kExtensionsMax) + " extensions"};
      }
    }
    return extensions;
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string("malformed recording: ") + failure.what()};
  }
}

std::vector<Unit> make_units(const Extension& extension) {
  std::vector<Unit> units;
  if (!extension.cpp_sources.empty() || !extension.functions.empty()) {
    Unit unit{"main.cpp", {}};
    for (size_t i = 0; i < extension.cpp_sources.size(); ++i) {
      unit.pieces.push_back({"cpp_sources[" + std::to_string(i) + "]", extension.cpp_sources[i]});
    }
    if (!extension.functions.empty()) unit.pieces.push_back({kBinding, binding_of(extension)});
    units.push_back(std::move(unit));
  }
  if (!extension.cuda_sources.empty()) {
    Unit unit{"cuda.cu", {}};
    if (!extension.prelude.empty()) unit.pieces.push_back({kPrelude, extension.prelude});
    for (size_t i = 0; i < extension.cuda_sources.size(); ++i) {
      unit.pieces.push_back({"cuda_sources[" + std::to_string(i) + "]", extension.cuda_sources[i]});
    }
    units.push_back(std::move(unit));
  }
  return units;
}

std::optional<task::Diagnostic> second_module(const Extension& extension,
                                              const LocationMapper& mapper) {
  if (extension.functions.empty()) return std::nullopt;
  for (const Unit& unit : make_units(extension)) {
    for (const SourceFile& piece : unit.pieces) {
      if (piece.name == kBinding) continue;
      for (const lex::Token& token : lex::tokenize(piece.text)) {
        if (token.in_directive || lex::text_of(piece.text, token) != "PYBIND11_MODULE") continue;
        return task::Diagnostic{
            "error", "load_inline writes PYBIND11_MODULE for `functions`; leave one of the two out",
            mapper.map(piece.name, static_cast<int>(token.line), static_cast<int>(token.column))};
      }
    }
  }
  return std::nullopt;
}

std::vector<std::string> headers_of(const Extension& extension) {
  std::vector<std::string> headers;
  const auto read = [&](std::string_view text) {
    for (const lex::Token& token : lex::tokenize(text)) {
      if (token.kind != lex::Kind::kHeader) continue;
      const std::string header(lex::text_of(text, token));
      MC_CHECK(header.size() >= 2);  // The text includes the quotes or brackets.
      const bool is_own = std::ranges::any_of(extension.files, [&](const SourceFile& file) {
        return file.name.ends_with(header.substr(1, header.size() - 2));
      });
      if (!is_own && std::ranges::find(headers, header) == headers.end()) headers.push_back(header);
    }
  };
  for (const Unit& unit : make_units(extension)) {
    for (const SourceFile& piece : unit.pieces) read(piece.text);
  }
  for (const SourceFile& file : extension.files) read(file.text);
  return headers;
}

std::string without_includes(std::string text, const std::vector<std::string>& headers) {
  for (const lex::Token& token : lex::tokenize(text)) {
    if (token.kind != lex::Kind::kHeader) continue;
    if (std::ranges::find(headers, lex::text_of(text, token)) == headers.end()) continue;
    const size_t end = token.offset + token.size;
    const size_t begin = std::string_view(text).substr(0, token.offset).rfind('#');
    if (begin == std::string_view::npos) continue;  // The directive begins with a digraph.
    std::fill(text.begin() + static_cast<ptrdiff_t>(begin),
              text.begin() + static_cast<ptrdiff_t>(end), ' ');
  }
  return text;
}

bool is_name_free(const Extension& extension, const std::vector<std::string>& flags) {
  const auto mentions = [](const std::string& flag) {
    return flag.find(kName) != std::string::npos;
  };
  if (std::ranges::any_of(flags, mentions) || !is_identifier(extension.name)) return false;
  NameUse use = extension.functions.empty() ? NameUse::kNone : NameUse::kBinds;
  const auto read = [&](std::string_view text) {
    use = std::max(use, name_use_in(text, extension.name));
  };
  std::ranges::for_each(extension.cpp_sources, read);
  std::ranges::for_each(extension.cuda_sources, read);
  for (const SourceFile& file : extension.files) read(file.text);
  return use == NameUse::kBinds;
}

namespace {

// "add" of "void (anonymous namespace)::add<float>(float*)".
std::string name_in(std::string_view kernel) {
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  if (const size_t at = kernel.rfind(kUnnamed, kernel.find('<')); at != std::string_view::npos) {
    kernel.remove_prefix(at + kUnnamed.size());
  }
  kernel = kernel.substr(0, kernel.find_first_of("<("));
  size_t begin = kernel.size();
  while (begin > 0 && is_word_byte(kernel[begin - 1])) --begin;
  return std::string(kernel.substr(begin));
}

}  // namespace

LocationMapper::LocationMapper(std::string_view candidate, const std::vector<Extension>& extensions)
    : candidate_lines_(copied_lines_of(candidate)) {
  const auto add = [&](size_t extension, const SourceFile& source) {
    Piece piece{extension, source.name, copied_lines_of(source.text), -1};
    piece.offset = offset_between(piece.lines, candidate_lines_);
    pieces_.push_back(std::move(piece));
  };
  for (size_t number = 0; number < extensions.size(); ++number) {
    for (const Unit& unit : make_units(extensions[number])) {
      for (const SourceFile& piece : unit.pieces) add(number, piece);
    }
    for (const SourceFile& file : extensions[number].files) add(number, file);
  }
}

LocationMapper LocationMapper::of(size_t extension) const {
  LocationMapper some = *this;
  std::erase_if(some.pieces_, [&](const Piece& piece) { return piece.extension != extension; });
  return some;
}

bool LocationMapper::owns(std::string_view source) const {
  return source == "candidate" ||
         std::ranges::any_of(pieces_, [&](const Piece& piece) { return piece.name == source; });
}

task::SourceLocation LocationMapper::map(const std::string& piece_name, int line, int column,
                                         std::string_view kernel) const {
  std::vector<const Piece*> named;
  for (const Piece& piece : pieces_) {
    if (piece.name == piece_name) named.push_back(&piece);
  }
  const std::string word = name_in(kernel);
  std::ranges::stable_partition(named, [&](const Piece* piece) {
    return !word.empty() && std::ranges::any_of(piece->lines, [&](std::string_view text) {
      return contains_word(text, word);
    });
  });
  for (const Piece* one : named) {
    const Piece& piece = *one;
    const std::string excerpt = excerpt_of(piece.lines, line);
    const int mapped = line + piece.offset;
    if (piece.offset >= 0 && excerpt_of(candidate_lines_, mapped) == excerpt) {
      return {"candidate", mapped, column, excerpt};
    }
    const int only = only_line(candidate_lines_, excerpt);
    if (only > 0) return {"candidate", only, column, excerpt};
    if (!excerpt.empty()) return {piece_name, line, column, excerpt};
  }
  if (piece_name == kModuleFile) {
    return {"candidate", line, column, excerpt_of(candidate_lines_, line)};
  }
  return {piece_name, line, column, ""};
}

}  // namespace mc::compile
