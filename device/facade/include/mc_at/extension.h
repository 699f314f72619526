// SPDX-License-Identifier: Apache-2.0
// torch/extension.h.  Only sources with a binding include bind.h (src/compile/facade.cc decides).
#ifndef MC_AT_EXTENSION_H_
#define MC_AT_EXTENSION_H_

#include "mc_at/torch.h"

// The facade has none of PyTorch's functions in this namespace.  Where it is declared, torch::cuda
// no longer means at::cuda.
namespace torch::cuda {}

#ifdef MC_AT_BINDS
#include "mc_bind/bind.h"
#endif

#endif  // MC_AT_EXTENSION_H_
