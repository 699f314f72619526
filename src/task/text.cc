// SPDX-License-Identifier: Apache-2.0
#include "task/text.h"

#include <cstdint>
#include <cstring>

#include "core/check.h"
#include "core/utf8.h"

namespace mc::task {
namespace {

bool is_space(int32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// True for a character that is invisible and may change how others are shown.
bool is_hidden(int32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0xAD || code == 0x061C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

// Cuts at the last character boundary that leaves room for the mark.
void cut(std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  size_t end = bytes_max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  text += "...";
}

}  // namespace

std::string plain_line(std::string_view text, size_t bytes_max) {
  MC_CHECK(bytes_max >= 3);
  std::string out;
  bool space = false;  // White space is pending until text follows it.
  while (!text.empty() && out.size() <= bytes_max) {
    const Character character = first_character(text);
    const size_t num_bytes = character.num_bytes == 0 ? 1 : character.num_bytes;
    const std::string_view bytes = character.num_bytes == 0 ? "\uFFFD" : text.substr(0, num_bytes);
    text.remove_prefix(num_bytes);
    if (character.num_bytes != 0 && is_space(character.code)) {
      space = !out.empty();
    } else if (character.num_bytes == 0 || !is_hidden(character.code)) {
      if (space) out += ' ';
      space = false;
      out += bytes;
    }
  }
  cut(out, bytes_max);
  return out;
}

std::string location_name(const SourceLocation& location) {
  constexpr size_t kSourceBytesMax = 60;
  const std::string source = plain_line(location.source, kSourceBytesMax);
  return location.line > 0 ? source + ':' + std::to_string(location.line) : source;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace mc::task
