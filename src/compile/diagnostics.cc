// SPDX-License-Identifier: Apache-2.0
//
// Messages of compilers, by the program that prints them (g++ 12 without carets, nvcc 13.0).
// Examples:
//   front end   cuda_sources[0](12): error: argument of type "int" is incompatible with ...
//                       more of the message, far to the right
//                 the line of source, after preprocessing
//                    ^
//                       detected during instantiation of "..." at line 4 of cuda_sources[0]
//               (an empty line)
//   g++         In file included from cuda_sources[0]:5:
//               a.h: In instantiation of 'struct A<int>':
//               cuda_sources[0]:9:7:   required from here
//               a.h:12:3: error: ...                    and its assembler: "...:12: Error: ..."
//               cuda_sources[0]:8:1: note: in expansion of macro 'M'
//   ld          /usr/bin/ld: x.o: in function `f()': ...: undefined reference to `g()'
//   ptxas       ptxas error   : Entry function '_Z1kPf' uses too much shared data (...)
//               ptxas /tmp/x.ptx, line 54; error   : Unknown modifier '.nope'
//   nvcc        nvcc fatal   : Unknown option '--bogus'
//
// Text before a message of g++ belongs to it and to the following messages, until it is printed
// again.  Other messages are ignored: notes of ptxas, totals, remarks.
#include "compile/diagnostics.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>

#include "core/demangle.h"
#include "core/text.h"
#include "task/text.h"

namespace mc::compile {
namespace {

constexpr size_t kMessageBytesMax = 600;
constexpr size_t kBlockLinesMax = 200;

struct Word {
  std::string_view text;
  const char* severity;
};
constexpr Word kWords[] = {{"error", "error"},
                           {"fatal error", "error"},
                           {"catastrophic error", "error"},
                           {"internal error", "error"},
                           {"Error", "error"},
                           {"fatal", "error"},
                           {"warning", "warning"},
                           {"Warning", "warning"},
                           {"remark", "note"},
                           {"note", "note"}};
constexpr std::string_view kTools[] = {"ptxas", "nvcc", "nvlink", "cicc", "cudafe++", "fatbinary"};

// The number in `text`; 0 when the whole of it is not a positive number.
int number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::max(number, 0) : 0;
}

// "error: message", "error #20-D: message", "fatal   : message".
struct Message {
  const char* severity;
  std::string_view text;
};

std::optional<Message> parse_message(std::string_view text) {
  for (const Word& word : kWords) {
    if (!text.starts_with(word.text)) continue;
    std::string_view rest = trimmed(text.substr(word.text.size()));
    if (rest.starts_with('#')) rest = trimmed(rest.substr(std::min(rest.find(':'), rest.size())));
    if (rest.starts_with(':')) return Message{word.severity, trimmed(rest.substr(1))};
  }
  return std::nullopt;
}

struct Found {
  std::string file;  // Empty where the message names no file.
  int line = 0;
  int column = 0;
  Message message;
};

// The name of the file; "" for nvcc's intermediate files, whose names mean nothing to a user.
std::string plain_file(std::string_view file) {
  return file.find("tmpxft_") == std::string_view::npos ? std::string(file) : "";
}

// file(12): error: ...
std::optional<Found> parse_front_end(std::string_view line) {
  const size_t close = line.find("): ");
  if (close == std::string_view::npos) return std::nullopt;
  const size_t open = line.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return std::nullopt;
  const int number = number_of(line.substr(open + 1, close - open - 1));
  const auto message = parse_message(line.substr(close + 3));
  if (number == 0 || !message) return std::nullopt;
  return Found{plain_file(line.substr(0, open)), number, 0, *message};
}

// Removes ":12" from the end of `text` and returns the number; 0 when there is none.
int take_number(std::string_view& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return 0;
  const int number = number_of(text.substr(colon + 1));
  if (number > 0) text = text.substr(0, colon);
  return number;
}

// The form is "file:12:3: error: ...", or without the column.
std::optional<Found> parse_host(std::string_view line) {
  for (size_t at = line.find(": "); at != std::string_view::npos; at = line.find(": ", at + 1)) {
    const auto message = parse_message(line.substr(at + 2));
    if (!message) continue;
    std::string_view file = line.substr(0, at);
    const int last = take_number(file);
    const int first = take_number(file);
    if (last == 0) return Found{"", 0, 0, *message};
    return Found{plain_file(file), first > 0 ? first : last, first > 0 ? last : 0, *message};
  }
  return std::nullopt;
}

// The form is "ptxas error   : ...".
std::optional<Found> parse_tool(std::string_view line) {
  const size_t space = line.find(' ');
  if (std::ranges::find(kTools, line.substr(0, space)) == std::end(kTools)) return std::nullopt;
  std::string_view rest = line.substr(space + 1);
  if (const size_t position = rest.find("; "); position != std::string_view::npos) {
    if (const auto message = parse_message(rest.substr(position + 2)))
      return Found{"", 0, 0, *message};
  }
  if (const auto message = parse_message(rest)) return Found{"", 0, 0, *message};
  return std::nullopt;
}

// True for totals after the errors, and for messages that the memory limit causes.
bool says_nothing(std::string_view line, std::string_view message) {
  return line.find("catastrophic error: out of memory") != std::string_view::npos ||
         message.find("Ptx assembly aborted") != std::string_view::npos ||
         message.find("died due to signal 9") != std::string_view::npos;
}

// The message with quoted names in the form in which the author wrote them.
std::string with_plain_names(std::string_view message) {
  std::string text;
  for (size_t quote = message.find("'_Z"); quote != std::string_view::npos;
       quote = message.find("'_Z")) {
    const size_t end = message.find('\'', quote + 1);
    if (end == std::string_view::npos) break;
    text += message.substr(0, quote + 1);
    text += demangle(message.substr(quote + 1, end - quote - 1));
    message.remove_prefix(end);
  }
  text += message;
  return text;
}

// The lines below a message of the front end, up to an empty one.
struct Block {
  std::string more;      // The rest of the message.
  std::string source;    // The line of source, as nvcc prints it.
  int caret_column = 0;  // The column within `source`.
  std::vector<std::string> context;
};

Block read_block(std::istringstream& stream) {
  std::vector<std::string> lines;
  size_t caret = std::string::npos;
  for (std::string line; stream.peek() == ' ' && std::getline(stream, line);) {
    if (lines.size() == kBlockLinesMax) continue;
    if (trimmed(line) == "^" && caret == std::string::npos) caret = lines.size();
    lines.push_back(std::move(line));
  }
  Block block;
  const size_t source = caret == std::string::npos || caret == 0 ? lines.size() : caret - 1;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i < source) block.more += " " + std::string(trimmed(lines[i]));
    if (i == source) block.source = lines[i];
    if (i == caret) block.caret_column = static_cast<int>(lines[i].find('^'));
    if (caret != std::string::npos && i > caret) block.context.push_back(lines[i]);
  }
  return block;
}

// The column in the candidate's line, known only where preprocessing did not change the line.
int column_of(const Block& block, const task::SourceLocation& location) {
  constexpr int kIndent = 2;
  const bool same = !location.excerpt.empty() &&
                    trimmed(block.source) == trimmed(location.excerpt) &&
                    block.source.size() == location.excerpt.size() + kIndent;
  return same ? block.caret_column - kIndent + 1 : 0;
}

// The candidate's own line that a context line refers to: "... at line 4 of cuda_sources[0]", or
// "... at line 4" of the same file.
task::SourceLocation location_in_context(const Block& block, const std::string& file,
                                         const LocationMapper& mapper) {
  task::SourceLocation own;
  for (const std::string& line : block.context) {
    constexpr std::string_view kAt = " at line ";
    const size_t at = line.rfind(kAt);
    if (at == std::string::npos) continue;
    const std::string_view rest = std::string_view(line).substr(at + kAt.size());
    const size_t of = rest.find(" of ");
    const int number = number_of(trimmed(rest.substr(0, of)));
    std::string where =
        of == std::string_view::npos ? file : std::string(trimmed(rest.substr(of + 4)));
    std::erase(where, '"');
    if (task::SourceLocation location = mapper.map(where, number, 0); !location.excerpt.empty()) {
      own = std::move(location);
    }
  }
  return own;
}

task::Diagnostic front_end_diagnostic(const Found& found, std::istringstream& stream,
                                      const LocationMapper& mapper) {
  const Block block = read_block(stream);
  std::string message = std::string(found.message.text) + block.more;
  task::SourceLocation location = mapper.map(found.file, found.line, 0);
  location.column = column_of(block, location);
  if (location.excerpt.empty()) {
    if (task::SourceLocation own = location_in_context(block, found.file, mapper);
        !own.excerpt.empty()) {
      location = std::move(own);
    }
  }
  for (const std::string& line : block.context) message += "; " + std::string(trimmed(line));
  if (!mapper.owns(location.source)) location.source = short_path(location.source);
  return {found.message.severity, with_short_paths(message).substr(0, kMessageBytesMax), location};
}

// ---- g++ ----------------------------------------------------------------------------------------

// The location in "file:12:3" or "file:12", as far as it can be parsed.
task::SourceLocation location_at(std::string_view text, const LocationMapper& mapper) {
  const int last = take_number(text);
  const int first = take_number(text);
  if (last == 0) return {};
  return mapper.map(std::string(text), first > 0 ? first : last, first > 0 ? last : 0);
}

// The context lines that g++ prints before an error in a header.
struct Surroundings {
  task::SourceLocation include;  // The candidate's own line that included the header.
  task::SourceLocation use;      // The use of a template that led to the error.
  std::string instantiated;      // The innermost instantiation: "struct C<int>".
};

// True if `line` is such a context line, which is then added to `around`.
bool read_surroundings(std::string_view line, const LocationMapper& mapper, Surroundings& around) {
  constexpr std::string_view kIncluded = "In file included from ";
  constexpr std::string_view kFrom = "                 from ";
  const bool is_first = line.starts_with(kIncluded);
  if (is_first || line.starts_with(kFrom)) {
    if (is_first) around = {};
    std::string_view where = line.substr(is_first ? kIncluded.size() : kFrom.size());
    while (where.ends_with(',') || where.ends_with(':')) where.remove_suffix(1);
    if (task::SourceLocation location = location_at(where, mapper); !location.excerpt.empty()) {
      around.include = std::move(location);
    }
    return true;
  }
  const size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return false;
  const std::string_view rest = line.substr(colon + 2);
  if (line.ends_with(':') && (rest.starts_with("In ") || rest.starts_with("At "))) {
    const size_t open = rest.find('\'');
    around.use = {};
    around.instantiated = "";
    if (rest.starts_with("In instantiation of ") && open != std::string_view::npos) {
      around.instantiated = rest.substr(open + 1, rest.rfind('\'') - open - 1);
    }
    return true;
  }
  if (!rest.starts_with("  ")) return false;
  task::SourceLocation location = location_at(line.substr(0, colon), mapper);
  if (around.use.excerpt.empty() && !location.excerpt.empty()) around.use = std::move(location);
  return true;
}

// The message about a function that m.def cannot bind, without the binding's own templates; ""
// where `message` is about something else.
std::string told_of_binding(const std::string& message, const Surroundings& around) {
  constexpr std::string_view kConverter = "mc_bind::Converter<";
  const std::string text = around.instantiated + ' ' + message;
  const size_t begin = text.find(kConverter);
  if (begin == std::string::npos) return "";
  std::string type = text.substr(begin + kConverter.size());
  type = type.substr(0, std::min(type.find(", void>"), type.find(">'")));
  return "a function bound to Python cannot take or return '" + type +
         "': use torch::Tensor, a number, bool, std::string, or std::vector, std::tuple or "
         "std::optional of these";
}

// Removes a suggestion of g++ with a name of ours, which the candidate does not see.
std::string without_our_names(std::string message) {
  const size_t suggestion = message.find("; did you mean '");
  if (suggestion == std::string::npos) return message;
  if (message.find("mc_", suggestion) != std::string::npos) message.resize(suggestion);
  return message;
}

task::Diagnostic host_diagnostic(const Found& found, const Surroundings& around,
                                 const LocationMapper& mapper) {
  std::string message = without_our_names(with_short_paths(with_plain_names(found.message.text)));
  task::Diagnostic diagnostic{found.message.severity, std::move(message), {}};
  if (found.file.empty()) return diagnostic;
  diagnostic.location = mapper.map(found.file, found.line, found.column);
  if (!diagnostic.location.excerpt.empty()) return diagnostic;
  diagnostic.location.source = short_path(found.file);
  if (diagnostic.severity == "note") return diagnostic;
  if (!around.use.excerpt.empty()) {
    const std::string told = told_of_binding(diagnostic.message, around);
    const std::string where = " (in " + task::location_name(diagnostic.location) + ")";
    diagnostic.message = told.empty() ? diagnostic.message + where : told;
    diagnostic.location = around.use;
  } else if (!around.include.excerpt.empty()) {
    diagnostic.message += " (in what " + task::location_name(around.include) + " includes)";
  }
  return diagnostic;
}

// True for an expansion note: an error in a header's macro belongs to the line that used the macro.
bool is_expansion(const task::Diagnostic& last, const Found& found) {
  return last.severity == "error" && last.location.excerpt.empty() &&
         found.message.text.starts_with("in expansion of macro ");
}

// ---- ld -----------------------------------------------------------------------------------------

std::optional<task::Diagnostic> linker_diagnostic(std::string_view line,
                                                  const LocationMapper& mapper) {
  task::Diagnostic diagnostic{"error", "", {}};
  for (const std::string_view error : {": undefined reference to ", ": multiple definition of "}) {
    const size_t at = line.find(error);
    if (at == std::string_view::npos) continue;
    const std::string_view where = line.substr(0, at);
    task::SourceLocation location = location_at(where.substr(where.rfind('/') + 1), mapper);
    if (!location.excerpt.empty()) diagnostic.location = std::move(location);
    diagnostic.message = with_short_paths(line.substr(at + 2));
    return diagnostic;
  }
  const size_t ld = line.find("ld: ");
  if (ld == std::string_view::npos || (ld != 0 && line[ld - 1] != '/')) return std::nullopt;
  const std::string_view message = line.substr(ld + 4);
  if (message.starts_with("warning:") || message.ends_with("':")) return std::nullopt;
  diagnostic.message = with_short_paths(message);
  return diagnostic;
}

}  // namespace

std::string short_path(std::string_view path) {
  constexpr std::string_view kInclude = "/include/";
  if (const size_t at = path.rfind(kInclude); at != std::string_view::npos) {
    return std::string(path.substr(at + kInclude.size()));
  }
  return std::string(path.starts_with('/') ? path.substr(path.rfind('/') + 1) : path);
}

std::string with_short_paths(std::string_view text) {
  constexpr std::string_view kEnds = " '\"`(),;:";
  std::string result;
  while (!text.empty()) {
    const size_t begin = std::min(text.find_first_not_of(kEnds), text.size());
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kEnds));
    result += word.starts_with('/') ? short_path(word) : std::string(word);
    text.remove_prefix(word.size());
  }
  return result;
}

std::vector<task::Diagnostic> errors_first(std::vector<task::Diagnostic> diagnostics,
                                           size_t num_max) {
  std::ranges::stable_partition(
      diagnostics, [](const task::Diagnostic& entry) { return entry.severity == "error"; });
  if (diagnostics.size() > num_max) diagnostics.resize(num_max);
  return diagnostics;
}

std::vector<task::Diagnostic> parse_diagnostics(std::string_view output,
                                                const LocationMapper& mapper, size_t num_max) {
  std::vector<task::Diagnostic> diagnostics;
  Surroundings around;
  std::istringstream stream{std::string(output)};
  for (std::string line; std::getline(stream, line);) {
    if (read_surroundings(line, mapper, around)) continue;
    if (line.empty() || line.front() == ' ') continue;  // Excerpts and their context.
    if (auto diagnostic = linker_diagnostic(line, mapper)) {
      diagnostic->message.resize(std::min(diagnostic->message.size(), kMessageBytesMax));
      diagnostics.push_back(std::move(*diagnostic));
      continue;
    }
    if (const auto found = parse_front_end(line)) {
      task::Diagnostic diagnostic = front_end_diagnostic(*found, stream, mapper);
      if (!says_nothing(line, diagnostic.message)) diagnostics.push_back(std::move(diagnostic));
      continue;
    }
    auto found = parse_tool(line);
    const std::string tool = found ? line.substr(0, line.find(' ')) + ": " : "";
    if (!found) found = parse_host(line);
    if (!found || says_nothing(line, found->message.text)) continue;
    task::Diagnostic diagnostic = host_diagnostic(*found, around, mapper);
    if (!diagnostics.empty() && is_expansion(diagnostics.back(), *found)) {
      diagnostics.back().location = diagnostic.location;
      continue;
    }
    diagnostic.message = (tool + diagnostic.message).substr(0, kMessageBytesMax);
    const bool is_sum =
        diagnostic.message.starts_with("ld returned");  // The total after the messages of ld.
    const bool is_known = std::ranges::find(diagnostics, diagnostic) != diagnostics.end();
    if (is_known || (is_sum && !diagnostics.empty())) continue;
    diagnostics.push_back(std::move(diagnostic));
  }
  return errors_first(std::move(diagnostics), num_max);
}

}  // namespace mc::compile
