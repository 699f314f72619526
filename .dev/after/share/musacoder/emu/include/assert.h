// SPDX-License-Identifier: Apache-2.0
// assert() that ends a kernel as it does on a GPU.  Like the C header, which it extends, it has no
// guard.
#include_next <assert.h>

#include "mc_emu/abi.h"

#ifndef NDEBUG
#undef assert
#define assert(condition)                              \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : mc_emu_assert_fail(#condition, __FILE__, __LINE__))
#endif
