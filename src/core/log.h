// SPDX-License-Identifier: Apache-2.0
//
// The debug log: lines on standard error about processes, compilers and stages, with the time and
// the thread.  It is off until enable_log() is called.
//
//   log_debug(fmt::format("{}: started", name));
#ifndef MC_CORE_LOG_H_
#define MC_CORE_LOG_H_

#include <string_view>

namespace mc {

// REQUIRES: no other thread uses the log yet.
void enable_log();
bool is_log_enabled();
// Thread-safe.
void log_debug(std::string_view message);

}  // namespace mc

#endif  // MC_CORE_LOG_H_
