// SPDX-License-Identifier: Apache-2.0
//
// The other functions of libcudart: each returns cudaErrorNotSupported, and its name reaches the
// verdict. They are declared here without their parameters, so this file includes nothing of
// CUDA's.
namespace mc::device {
int note_unsupported_name(const char* name);
}

extern "C" {
#define MC_UNSUPPORTED(name) \
  int name() { return mc::device::note_unsupported_name(#name); }
#include "client/unsupported.inc"
#undef MC_UNSUPPORTED
}
