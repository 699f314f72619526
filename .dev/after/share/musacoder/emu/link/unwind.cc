// SPDX-License-Identifier: Apache-2.0
//
// The unwinder of the process instead of a second one.
//
// libmc_emu.so holds its own copy of libstdc++, so that it runs beside any other.  A kernel may
// throw, though: that exception is raised by the candidate's libstdc++ and libgcc_s, and is caught
// in a frame of this library, whose personality routine then works on the unwinder's state.  A
// second unwinder, linked in statically, aborts there.  So what libstdc++ wants of an unwinder is
// defined here, before libgcc_eh.a can, and jumps to libgcc_s.so.1, which is in every process that
// has a libstdc++.so, hence in PyTorch's.  Jumps, not calls: the unwinder looks at its caller.
#ifndef __x86_64__
#error "these jumps are written for x86-64 only"
#endif

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// All that libstdc++.a leaves undefined of an unwinder; were one missing here, the link would fail.
#define MC_UNWINDER(X)               \
  X(_Unwind_DeleteException)         \
  X(_Unwind_GetDataRelBase)          \
  X(_Unwind_GetIPInfo)               \
  X(_Unwind_GetLanguageSpecificData) \
  X(_Unwind_GetRegionStart)          \
  X(_Unwind_GetTextRelBase)          \
  X(_Unwind_RaiseException)          \
  X(_Unwind_Resume)                  \
  X(_Unwind_Resume_or_Rethrow)       \
  X(_Unwind_SetGR)                   \
  X(_Unwind_SetIP)

#define MC_FORWARD(name)                                                                  \
  extern "C" __attribute__((visibility("hidden"))) void* mc_target##name;                 \
  void* mc_target##name = nullptr;                                                        \
  asm(".text\n .globl " #name "\n .hidden " #name "\n .type " #name ", @function\n" #name \
      ": jmpq *mc_target" #name "(%rip)\n .size " #name ", .-" #name);
MC_UNWINDER(MC_FORWARD)

namespace {

void find(void* unwinder, const char* name, void*& target) {
  target = unwinder == nullptr ? nullptr : dlsym(unwinder, name);
  if (target != nullptr) return;
  std::fprintf(stderr, "libmc_emu.so: no %s: libgcc_s.so.1 is missing or too old\n", name);
  std::abort();
}

// Before all other constructors, any of which may throw.
__attribute__((constructor(101))) void find_unwinder() {
  void* const unwinder = dlopen("libgcc_s.so.1", RTLD_NOW);
#define MC_FIND(name) find(unwinder, #name, mc_target##name);
  MC_UNWINDER(MC_FIND)
}

}  // namespace
