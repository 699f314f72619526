// SPDX-License-Identifier: Apache-2.0
#include "ptx/access.h"

namespace mc::ptx::MC_PTX_VARIANT {

void add_copies(PlainHandlers&) {}
Handler find_atomic(const AtomicKey&) { return nullptr; }
Handler find_matrix(const MatrixKey&) { return nullptr; }

}  // namespace mc::ptx::MC_PTX_VARIANT
