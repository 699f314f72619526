// SPDX-License-Identifier: Apache-2.0
//
// The functions of libcudart and libcuda that the other sources of this folder do not have: each
// returns cudaErrorNotSupported, and its name reaches the verdict.  unsupported.py takes the names
// from CUDA's headers, so the functions of the other sources are among them: a definition there
// takes the place of the weak one here.  The parameters are not declared, so this file includes
// nothing of CUDA's.
namespace mc::device {
int note_unsupported_name(const char* name);
}

extern "C" {
#define MC_UNSUPPORTED(name) \
  [[gnu::weak]] int name() { return mc::device::note_unsupported_name(#name); }
#include "unsupported.inc"
#undef MC_UNSUPPORTED
}
