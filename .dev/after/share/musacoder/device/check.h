// SPDX-License-Identifier: Apache-2.0
//
// MC_CHECK: a fact that only a defect of ours can break, as in src/core/check.h, which the device's
// two libraries do not have.  It prints the place and aborts, in every build.
//
// Both libraries serve a hostile candidate: what comes through the channel or from the candidate's
// own calls is never checked with it, but refused with an error.
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
