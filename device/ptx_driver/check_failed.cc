// SPDX-License-Identifier: Apache-2.0
//
// The end of a failed check in the emulator, inside the device process.  The definition takes the
// place of that in src/core/check.cc, which aborts: the linker takes no other from the library.
#include "check.h"

namespace mc {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

void check_failed(const char* file, int line, const char* condition) {
  device::check_failed(file, line, condition);
}

}  // namespace mc
