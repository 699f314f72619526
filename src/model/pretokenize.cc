// SPDX-License-Identifier: Apache-2.0
#include "model/pretokenize.h"

#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace mc::model {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

// Replaces \s by the property White_Space, which differs from PCRE2's \s in U+180E.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      text += pattern[i];
      continue;
    }
    const char escaped = pattern[++i];
    if (escaped == 's') {
      text += "\\p{White_Space}";
    } else if (escaped == 'S') {
      text += "\\P{White_Space}";
    } else {
      text += {'\\', escaped};
    }
  }
  return text;
}

struct MatchDataFree {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

struct Splitter::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code;
};

Splitter::Splitter(std::unique_ptr<Code> code, Behavior behavior)
    : code_(std::move(code)), behavior_(behavior) {}
Splitter::Splitter(Splitter&& other) noexcept = default;
Splitter& Splitter::operator=(Splitter&& other) noexcept = default;
Splitter::~Splitter() = default;

Result<Splitter> Splitter::create(std::string_view pattern, Behavior behavior) {
  const std::string text = with_unicode_spaces(pattern);
  int number = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                   PCRE2_UTF | PCRE2_UCP, &number, &offset, nullptr);
  if (code == nullptr) {
    char reason[256] = "";
    pcre2_get_error_message(number, reinterpret_cast<PCRE2_UCHAR*>(reason), sizeof reason);
    return invalid("the regular expression " + std::string(pattern) +
                   " does not compile: " + reason);
  }
  // If JIT compilation fails, the interpreter runs the expression.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return Splitter(std::make_unique<Code>(code), behavior);
}

void Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const std::unique_ptr<pcre2_match_data, MatchDataFree> match(
      pcre2_match_data_create_from_pattern(code_->code, nullptr));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t piece = 0;  // The start of the text that is not yet in a piece.
  size_t from = 0;
  while (from < text.size()) {
    const int found = pcre2_match(code_->code, subject, text.size(), from,
                                  PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.get(), nullptr);
    if (found < 0) break;  // Without a match, or at a limit of the engine, the rest is one piece.
    const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match.get());
    if (place[0] > piece) pieces.push_back(text.substr(piece, place[0] - piece));
    if (behavior_ == Behavior::kIsolated) {
      pieces.push_back(text.substr(place[0], place[1] - place[0]));
    }
    piece = from = place[1];
  }
  if (piece < text.size()) pieces.push_back(text.substr(piece));
}

}  // namespace mc::model
