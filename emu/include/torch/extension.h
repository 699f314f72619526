// SPDX-License-Identifier: Apache-2.0
// Stands in for PyTorch's header of this name: tensors and the binding, without pybind11.
#pragma once
#ifndef MC_EMU_PRELUDE_H_  // Precompiled, it is not found as a file.
#include "mc_emu/prelude.h"
#endif
