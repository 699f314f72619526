// SPDX-License-Identifier: Apache-2.0
//
// The native code of contestants on a CUDA device (device/mc_device.h): built once for each toolkit
// and PyTorch, then kept in the cache.
#ifndef MC_COMPILE_DEVICE_LIBRARY_H_
#define MC_COMPILE_DEVICE_LIBRARY_H_

#include <filesystem>

#include "compile/cpu_runtime.h"
#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

// `toolkit` holds include/cuda.h.  kUnavailable where CUPTI, which PyTorch for CUDA brings, is not
// found, or the compiler fails.
Result<std::filesystem::path> prepare_device_library(const PyTorch& pytorch,
                                                     const std::filesystem::path& toolkit,
                                                     const Layout& layout,
                                                     const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_DEVICE_LIBRARY_H_
