// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <unistd.h>

#include <cstdio>

namespace mc::device {

// The exit runs no handler and no destructor, since the state of the process is unknown.
void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  ::_exit(kFailedCheckExit);
}

}  // namespace mc::device
