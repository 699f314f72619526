// SPDX-License-Identifier: Apache-2.0
// MC_EMU_CHECK: what holds unless the emulator has a defect.  Where it does not hold the process
// reports the place and ends, and the verdict is `unsupported`: a defect of the emulator says
// nothing about the candidate whose kernel it ran.
#ifndef MC_EMU_RUNTIME_CHECK_H_
#define MC_EMU_RUNTIME_CHECK_H_

namespace mc::emu {

[[noreturn, gnu::cold]] void fail_check(const char* condition, const char* file, int line);

}  // namespace mc::emu

#define MC_EMU_CHECK(condition)                         \
  (__builtin_expect(static_cast<bool>(condition), true) \
       ? static_cast<void>(0)                           \
       : ::mc::emu::fail_check(#condition, __FILE__, __LINE__))

#endif  // MC_EMU_RUNTIME_CHECK_H_
