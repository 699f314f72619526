// SPDX-License-Identifier: Apache-2.0
#include "lex/edit.h"

#include <algorithm>

#include "core/check.h"

namespace mc::lex {

std::string apply_edits(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
  std::string result;
  std::size_t done = 0;
  for (const Edit& edit : edits) {
    MC_CHECK(edit.offset >= done && edit.offset + edit.size <= text.size());
    result.append(text.substr(done, edit.offset - done)).append(edit.replacement);
    done = edit.offset + edit.size;
  }
  return result.append(text.substr(done));
}

}  // namespace mc::lex
