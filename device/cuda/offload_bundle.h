// SPDX-License-Identifier: Apache-2.0
//
// The bundles in which Clang puts code for several devices into one file: mcc's images are such.
//
// A bundle is "__CLANG_OFFLOAD_BUNDLE__", the number of its entries, and for each entry its offset
// from the bundle's begin, its size, the length of its name, and the name, such as
// "musa-mtgpu-mt-musa--mp_22"; numbers have 64 bits.  The code is behind them.  The format is
// documented with clang-offload-bundler; the names are those in MUSA's public libraries.
#ifndef MC_DEVICE_CUDA_OFFLOAD_BUNDLE_H_
#define MC_DEVICE_CUDA_OFFLOAD_BUNDLE_H_

#include <string_view>

namespace mc::device {

// True if the bytes begin with a bundle's magic; its contents are not checked.
bool is_offload_bundle(std::string_view bytes);

// The code for the architecture, such as "mp_22", in the bundle that `bytes` begins with; empty if
// it has none, or if a part of it is outside `bytes`.
std::string_view code_in_bundle(std::string_view bytes, std::string_view architecture);

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_OFFLOAD_BUNDLE_H_
