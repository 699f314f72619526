// SPDX-License-Identifier: Apache-2.0
//
// The library that counts ATen operators in a contestant and takes away those that it may not use
// (emu/torch/shim_record.cc, shim_guard.cc), and the runtime of candidates that the facade served:
// their binding (emu/torch/shim.cc) and facade/runtime.  For backends that need nothing else of the
// shim.  Built once per PyTorch, then kept in the cache.  `toolkit` has CUDA's headers.
#ifndef MC_COMPILE_ATEN_LIBRARY_H_
#define MC_COMPILE_ATEN_LIBRARY_H_

#include <filesystem>

#include "compile/pytorch.h"
#include "core/layout.h"
#include "core/result.h"

namespace mc::compile {

Result<std::filesystem::path> prepare_aten_library(const PyTorch& pytorch,
                                                   const std::filesystem::path& toolkit,
                                                   const Layout& layout, const Progress& progress);

}  // namespace mc::compile

#endif  // MC_COMPILE_ATEN_LIBRARY_H_
