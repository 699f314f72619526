// SPDX-License-Identifier: Apache-2.0
#include "task/text.h"

#include <cstdint>
#include <cstring>

#include "core/check.h"

namespace mc::task {
namespace {

struct Character {
  uint32_t code = 0;
  size_t num_bytes = 0;  // 0 = not well-formed.
};

size_t length_of_lead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The first character of a text that is not empty.
Character first_character(std::string_view text) {
  constexpr uint32_t kLeadMask[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  constexpr uint32_t kCodeMin[] = {0, 0, 0x80, 0x800, 0x10000};
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = length_of_lead(lead);
  if (length == 0 || length > text.size()) return {};
  uint32_t code = lead & kLeadMask[length];
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3F);
  }
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kCodeMin[length] || code > 0x10FFFF || surrogate) return {};
  return {code, length};
}

bool is_space(uint32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

// Characters that show nothing of their own and may change how others are shown.
bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0xAD || code == 0x061C ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
         (code >= 0xE0000 && code <= 0xE0FFF);
}

// Cuts at the last character that leaves room for the mark.
void cut(std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  size_t end = bytes_max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  text += "...";
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t num_bytes = first_character(text.substr(at)).num_bytes;
    if (num_bytes == 0) return at;
    at += num_bytes;
  }
  return std::nullopt;
}

std::string plain_line(std::string_view text, size_t bytes_max) {
  MC_CHECK(bytes_max >= 3);
  std::string out;
  bool space = false;  // White space waits for the text after it.
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

std::string place_name(const Place& place) {
  constexpr size_t kSourceBytesMax = 60;
  const std::string source = plain_line(place.source, kSourceBytesMax);
  return place.line > 0 ? source + ':' + std::to_string(place.line) : source;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace mc::task
