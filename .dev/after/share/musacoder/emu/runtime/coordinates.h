// SPDX-License-Identifier: Apache-2.0
// The coordinates that kernels read, as the runtime writes them: to candidate code they are
// constant.
#ifndef MC_EMU_RUNTIME_COORDINATES_H_
#define MC_EMU_RUNTIME_COORDINATES_H_

#include "runtime/worker.h"

#define MC_EMU_TLS extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))

extern "C" {
MC_EMU_TLS mc::emu::Coordinates mc_emu_thread_index;
MC_EMU_TLS mc::emu::Coordinates mc_emu_block_index;
MC_EMU_TLS mc::emu::Coordinates mc_emu_block_dim;
MC_EMU_TLS mc::emu::Coordinates mc_emu_grid_dim;
}

#undef MC_EMU_TLS

#endif  // MC_EMU_RUNTIME_COORDINATES_H_
