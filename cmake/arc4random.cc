// SPDX-License-Identifier: Apache-2.0
//
// The function that Debian 12's libstdc++ takes its random numbers from.  The C library has it from
// 2.36 on, and the programs run on Ubuntu 22.04, which has 2.35.  A program may be made of two
// targets that hold it.
#include <sys/random.h>

#include <cstdint>
#include <cstdlib>

extern "C" [[gnu::weak]] uint32_t arc4random() {
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) std::abort();
  return number;
}
