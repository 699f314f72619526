// SPDX-License-Identifier: Apache-2.0
#include "lex/utf8.h"

#include <cstdint>

namespace mc::lex {
namespace {

bool is_continuation(std::string_view text, std::size_t offset) {
  return offset < text.size() && (static_cast<std::uint8_t>(text[offset]) & 0xC0) == 0x80;
}

// The second byte narrows what the first allows: no overlong forms, surrogates, or beyond U+10FFFF.
bool is_second_byte(std::uint8_t first, std::uint8_t second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0;
    case 0xED:
      return second < 0xA0;
    case 0xF0:
      return second >= 0x90;
    case 0xF4:
      return second < 0x90;
    default:
      return true;
  }
}

}  // namespace

std::size_t utf8_length_at(std::string_view text, std::size_t offset) {
  const auto first = static_cast<std::uint8_t>(text[offset]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_continuation(text, offset + i)) return 0;
  }
  return is_second_byte(first, static_cast<std::uint8_t>(text[offset + 1])) ? length : 0;
}

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t offset = 0;
  while (offset < text.size()) {
    const std::size_t length = utf8_length_at(text, offset);
    if (length == 0) return offset;
    offset += length;
  }
  return offset;
}

}  // namespace mc::lex
