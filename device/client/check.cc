// SPDX-License-Identifier: Apache-2.0
#include "check.h"

#include <cstdio>
#include <cstdlib>

namespace mc::device {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace mc::device
