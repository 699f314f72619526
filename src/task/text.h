// SPDX-License-Identifier: Apache-2.0
//
// Text that someone else wrote, made fit to be kept and shown.
#ifndef MC_TASK_TEXT_H_
#define MC_TASK_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "task/verdict.h"

namespace mc::task {

// One line of plain text from anything: a byte that is not UTF-8 becomes U+FFFD; a run of white
// space becomes one space; control characters (also those of U+0080 to U+009F, bidirectional
// overrides and zero-width marks, which would change how the line is shown) vanish; what is longer
// than `bytes_max` ends in "..." on a character's boundary.
// REQUIRES: bytes_max >= 3.
std::string plain_line(std::string_view text, size_t bytes_max);

// "cuda_sources[0]:12", or the source alone where the line is unknown, or "".
std::string place_name(const SourceLocation& location);

// "SIGSEGV"; "signal 99" for one without a name.
std::string signal_name(int signal);

}  // namespace mc::task

#endif  // MC_TASK_TEXT_H_
