// SPDX-License-Identifier: Apache-2.0
//
// Makes foreign text safe to store and show.
#ifndef MC_TASK_TEXT_H_
#define MC_TASK_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "task/verdict.h"

namespace mc::task {

// One line of plain text from any bytes.  A byte that is not UTF-8 becomes U+FFFD; a run of white
// space becomes one space; control characters are removed (also those of U+0080 to U+009F,
// bidirectional overrides and zero-width marks, which would change the look of the line); text
// beyond `bytes_max` is cut at a character's boundary and ends in "...".  REQUIRES: bytes_max >= 3.
std::string plain_line(std::string_view text, size_t bytes_max);

// "cuda_sources[0]:12", or the source alone where the line is unknown, or "".
std::string location_name(const SourceLocation& location);

// "SIGSEGV"; "signal 99" for one without a name.
std::string signal_name(int signal);

}  // namespace mc::task

#endif  // MC_TASK_TEXT_H_
