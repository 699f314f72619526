// SPDX-License-Identifier: Apache-2.0
//
// MC_CHECK: asserts a condition that only a defect of this project can break.  If it is false, the
// macro prints the source location and aborts, in every build.  The device's two libraries do not
// link src/core, so they cannot use src/core/check.h.
//
// Both libraries serve a hostile candidate: bad data from the channel or from the candidate's calls
// is never an assertion failure; it is refused with an error.
#ifndef MC_DEVICE_CHECK_H_
#define MC_DEVICE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace mc::device {

[[noreturn, gnu::cold]] inline void check_failed(const char* file, int line,
                                                 const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace mc::device

#define MC_CHECK(condition)                                                       \
  do {                                                                            \
    if (!(condition)) ::mc::device::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#endif  // MC_DEVICE_CHECK_H_
