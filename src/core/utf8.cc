// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.h"

#include <utf8proc.h>

#include "core/check.h"

namespace mc {

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

}  // namespace mc
