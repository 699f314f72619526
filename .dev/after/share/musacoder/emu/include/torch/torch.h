// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name. The rest of its C++ interface takes a compiler half a minute, so
// it is read only for a candidate that does not compile without it (MC_EMU_WHOLE).
#pragma once
#include <torch/cuda.h>
#if defined(MC_AT_TORCH_H_) || defined(MC_EMU_WHOLE)
#include_next <torch/torch.h>
#else
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#endif
