// SPDX-License-Identifier: Apache-2.0
#include "runtime/check.h"

#include <cstdio>
#include <cstdlib>

#include "runtime/runtime.h"

namespace mc::emu {

void fail_check(const char* condition, const char* file, int line) {
  Finding finding;
  finding.kind = "unsupported";
  std::snprintf(finding.detail, sizeof finding.detail, "a defect of the emulator at %s:%d: %s",
                file, line, condition);
  Runtime::get().report().add(finding);
  std::abort();
}

}  // namespace mc::emu
