// SPDX-License-Identifier: Apache-2.0
//
// MC_CHECK: asserts a condition that only a defect of this project can break, in every build.  The
// device's two libraries do not link src/core, so they cannot use src/core/check.h.
//
// Both libraries serve a hostile candidate: bad data from the channel or from the candidate's calls
// is never an assertion failure; it is refused with an error.
#ifndef MC_DEVICE_CHECK_H_
#define MC_DEVICE_CHECK_H_

namespace mc::device {

// The device process ends with this exit code (EX_SOFTWARE) after a failed check.  The supervisor
// then blames no candidate (src/execute/device_process.cc).
inline constexpr int kFailedCheckExit = 70;

// Prints the condition and its source location, and ends the process: the device process with
// kFailedCheckExit (cuda/check.cc), a candidate's process by abort() (client/check.cc).
[[noreturn, gnu::cold]] void check_failed(const char* file, int line, const char* condition);

}  // namespace mc::device

#define MC_CHECK(condition)                                                       \
  do {                                                                            \
    if (!(condition)) ::mc::device::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#endif  // MC_DEVICE_CHECK_H_
