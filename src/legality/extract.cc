// SPDX-License-Identifier: Apache-2.0
#include "legality/extract.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/utf8.h"
#include "legality/fences.h"
#include "legality/python_text.h"

namespace mc::legality {
namespace {

using Lines = std::vector<std::string_view>;

constexpr std::array<std::string_view, 4> kReasoningTags = {"think", "thinking", "thought",
                                                            "reasoning"};
constexpr int kBlockNestingMax = 4;

task::Unextractable refuse(std::string reason, std::string detail) {
  task::Unextractable refusal;
  refusal.reason = std::move(reason);
  refusal.detail = std::move(detail);
  return refusal;
}

// The size of <tag> or </tag> at the `<` at `i`, or 0.
std::size_t tag_size(std::string_view text, std::size_t i, std::string_view opener) {
  if (text.substr(i, opener.size()) != opener) return 0;
  const std::string_view rest = text.substr(i + opener.size());
  for (const std::string_view tag : kReasoningTags) {
    if (rest.substr(0, tag.size()) == tag && rest.substr(tag.size(), 1) == ">") {
      return opener.size() + tag.size() + 1;
    }
  }
  return 0;
}

bool is_at_line_start(std::string_view text, std::size_t i) {
  while (i > 0 && (text[i - 1] == ' ' || text[i - 1] == '\t')) --i;
  return i == 0 || text[i - 1] == '\n';
}

struct Answer {
  std::string_view text;  // The answer without reasoning.
  bool is_unfinished = false;
};

// The text after the last closing tag, without the part from an opening tag that is never closed.
Answer without_reasoning(std::string_view text) {
  std::size_t start = 0;
  std::size_t end = text.size();
  for (std::size_t i = text.find('<'); i != std::string_view::npos; i = text.find('<', i + 1)) {
    if (const std::size_t size = tag_size(text, i, "</")) {
      start = i + size;
      end = text.size();
    } else if (end == text.size() && tag_size(text, i, "<") != 0 && is_at_line_start(text, i)) {
      end = i;
    }
  }
  return {text.substr(start, end - start), end != text.size()};
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

// True if the first line that is not blank or a comment is Python.
bool begins_as_module(const Lines& lines) {
  for (const std::string_view line : lines) {
    if (is_blank(line) || line.front() == '#') continue;
    return starts_like_python(line);
  }
  return false;
}

// The lines before the first one, outside of strings, that is a fence, or prose after ModelNew.
Lines module_part(const Lines& lines) {
  Lines part;
  StringTracker strings;
  bool is_after_class = false;
  for (const std::string_view line : lines) {
    if (!strings.is_inside()) {
      is_after_class = is_after_class || traits_of({line}).defines_model_new;
      if (fence_of(line).length > 0 || (is_after_class && is_prose(line))) break;
    }
    strings.read(line);
    part.push_back(line);
  }
  return part;
}

// A text that starts like Python and defines ModelNew before any fence: a plain module, or the rest
// of an answer whose opening fence was part of the prompt.
std::optional<Lines> bare_module(const Lines& lines) {
  if (!begins_as_module(lines)) return std::nullopt;
  Lines part = module_part(lines);
  const PythonTraits traits = traits_of(part);
  if (!traits.defines_model_new || traits.ends_inside_string) return std::nullopt;
  return part;
}

// The lines from the first one that starts like Python, outside of strings.
Lines from_first_python(const Lines& lines) {
  StringTracker strings;
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    if (!strings.is_inside() && starts_like_python(*line)) return {line, lines.end()};
    strings.read(*line);
  }
  return {};
}

// A module outside of fences, after a line or two of prose.
std::optional<Lines> unfenced_module(const Lines& lines) {
  Lines part = module_part(from_first_python(lines));
  if (!traits_of(part).defines_model_new) return std::nullopt;
  return part;
}

std::optional<Lines> last_block(const Lines& lines, int nesting);

// The block itself, or the block inside it that defines ModelNew, for Markdown quoted in Markdown.
Lines innermost(Lines block, int nesting) {
  if (nesting >= kBlockNestingMax || begins_as_module(block)) return block;
  std::optional<Lines> inner = last_block(block, nesting + 1);
  return inner ? *std::move(inner) : std::move(block);
}

// The last block that defines ModelNew and imports something, else the last that defines it.
std::optional<Lines> last_block(const Lines& lines, int nesting) {
  std::optional<Lines> fallback;
  const std::vector<Block> blocks = blocks_in(lines);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    Lines inner = lines_of(lines, *block);
    const PythonTraits traits = traits_of(inner);
    if (!traits.defines_model_new) continue;
    if (traits.has_import) return innermost(std::move(inner), nesting);
    if (!fallback) fallback = std::move(inner);
  }
  return fallback;
}

// A block, or the whole text, in which an unterminated string hides ModelNew; the parser will
// report where the string begins.
std::optional<Lines> unfinished_module(const Lines& lines) {
  const auto hides_model_new = [](const Lines& text) {
    return traits_of(text).ends_inside_string &&
           std::ranges::any_of(
               text, [](std::string_view line) { return line.starts_with("class ModelNew"); });
  };
  const std::vector<Block> blocks = blocks_in(lines);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
    if (Lines inner = lines_of(lines, *block); hides_model_new(inner)) return inner;
  }
  if (begins_as_module(lines) && hides_model_new(lines)) return lines;
  return std::nullopt;
}

std::string join(const Lines& lines) {
  std::string text;
  for (const std::string_view line : lines) text.append(line).append("\n");
  return text;
}

bool is_too_deep(std::string_view text) {
  int depth = 0;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth > kNestingDepthMax) return true;
  }
  return false;
}

Extraction checked(std::string module) {
  if (module.size() > task::kCandidateBytesMax) {
    return refuse("too_large", "the module has " + std::to_string(module.size()) +
                                   " bytes; the limit is " +
                                   std::to_string(task::kCandidateBytesMax));
  }
  if (const std::size_t nul = module.find('\0'); nul != std::string::npos) {
    return refuse("nul_byte", "the module has a NUL byte at offset " + std::to_string(nul));
  }
  if (const std::size_t bad = first_invalid_utf8(module); bad != module.size()) {
    return refuse("invalid_utf8", "the module is not UTF-8 at offset " + std::to_string(bad));
  }
  if (is_too_deep(module)) {
    return refuse("too_deep", "the module has brackets nested more than " +
                                  std::to_string(kNestingDepthMax) + " deep");
  }
  return Extracted{std::move(module)};
}

// The reason why no module was found.
task::Unextractable explain(std::string_view text, const Answer& answer, const Lines& lines) {
  if (answer.is_unfinished) {
    return refuse("unfinished_reasoning", "the reasoning is never closed, so there is no answer");
  }
  if (first_invalid_utf8(text) != text.size()) {
    return refuse("invalid_utf8",
                  "the answer is not UTF-8 at offset " + std::to_string(first_invalid_utf8(text)));
  }
  const bool has_code = !blocks_in(lines).empty() || begins_as_module(lines);
  if (!has_code) return refuse("no_code", "the answer has no code block");
  return refuse("no_model_new", "no code block of the answer defines class ModelNew");
}

}  // namespace

Extraction extract(std::string_view text) {
  if (text.size() > task::kAnswerBytesMax) {
    return refuse("too_large", "the answer has " + std::to_string(text.size()) +
                                   " bytes; the limit is " + std::to_string(task::kAnswerBytesMax));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return refuse("empty", "the answer is empty");
  }
  const Answer answer = without_reasoning(text);
  const Lines lines = mc::lines_of(answer.text);
  std::optional<Lines> module = bare_module(lines);
  if (!module) module = last_block(lines, 0);
  if (!module) module = unfenced_module(lines);
  if (!module) module = unfinished_module(lines);
  return module ? checked(join(*module)) : Extraction(explain(text, answer, lines));
}

std::string_view visible_answer(std::string_view answer) {
  const std::string_view text = without_reasoning(answer).text;
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}

}  // namespace mc::legality
