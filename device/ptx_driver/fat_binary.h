// SPDX-License-Identifier: Apache-2.0
//
// The PTX in a fat binary, which is what nvcc puts into an object file for the driver.
//
// A fat binary is a header and entries behind it, one for each architecture, with PTX or machine
// code.  NVIDIA does not document it; the fields that are read here were found in binaries of
// nvcc 13.0.
#ifndef MC_PTX_DRIVER_FAT_BINARY_H_
#define MC_PTX_DRIVER_FAT_BINARY_H_

#include <string_view>

#include "core/result.h"

namespace mc::ptx_driver {

// The text for the newest architecture that is at most `architecture`, such as 90.  kUnsupported
// where the binary has none, or a compressed one.  REQUIRES: the bytes that the header counts are
// there.
Result<std::string_view> ptx_in(const void* fat_binary, int architecture);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_FAT_BINARY_H_
