// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

#include <algorithm>
#include <charconv>

#include <utf8proc.h>

#include "core/check.h"

namespace mc {
namespace {

constexpr size_t kEscapeBytes = 6;  // "\ud800"

// The code unit of the escape that `text` begins with; 0 where it does not begin with an escape.
uint16_t escaped_unit(std::string_view text) {
  if (text.size() < kEscapeBytes || !text.starts_with("\\u")) return 0;
  uint16_t unit = 0;
  const char* end = text.data() + kEscapeBytes;
  const auto read = std::from_chars(text.data() + 2, end, unit, 16);
  return read.ec == std::errc() && read.ptr == end ? unit : 0;
}

bool is_high_half(uint16_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_half(uint16_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// The number of bytes of the character that `text`, which begins with a backslash, starts with; 0
// for a lone surrogate.
size_t escape_bytes(std::string_view text) {
  const uint16_t unit = escaped_unit(text);
  if (is_low_half(unit)) return 0;
  if (!is_high_half(unit)) return std::min(text.size(), size_t{2});
  return is_low_half(escaped_unit(text.substr(kEscapeBytes))) ? 2 * kEscapeBytes : 0;
}

}  // namespace

Character first_character(std::string_view text) {
  MC_CHECK(!text.empty());
  Character found;
  const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                     static_cast<utf8proc_ssize_t>(text.size()), &found.code);
  if (size > 0) found.num_bytes = static_cast<size_t>(size);
  return found;
}

size_t first_invalid_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const size_t num_bytes = first_character(text.substr(offset)).num_bytes;
    if (num_bytes == 0) break;
    offset += num_bytes;
  }
  return offset;
}

std::string without_lone_surrogates(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const size_t plain = std::min(json.find('\\'), json.size());
    out += json.substr(0, plain);
    json.remove_prefix(plain);
    if (json.empty()) break;
    const size_t num_bytes = escape_bytes(json);
    out += num_bytes == 0 ? "\\ufffd" : json.substr(0, num_bytes);
    json.remove_prefix(num_bytes == 0 ? kEscapeBytes : num_bytes);
  }
  return out;
}

}  // namespace mc
