// SPDX-License-Identifier: Apache-2.0
#include "ptx/decoder.h"

namespace mc::ptx {

bool Decoder::try_matrix(const Instruction&) { return false; }

}  // namespace mc::ptx
