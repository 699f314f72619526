// SPDX-License-Identifier: Apache-2.0
//
// The code in a fat binary, the format in which nvcc stores device code in an object file.
//
// A fat binary is a header followed by entries, one for each architecture, with PTX or machine
// code.  NVIDIA does not document the format; the fields below were found in binaries of nvcc 13.0.
#ifndef MC_PTX_DRIVER_FAT_BINARY_H_
#define MC_PTX_DRIVER_FAT_BINARY_H_

#include <string_view>

#include "core/result.h"

namespace mc::ptx_driver {

struct Code {
  std::string_view ptx;
  std::string_view machine_code;  // For the same architecture; may be empty.
};

// The PTX for the newest architecture that is at most `architecture`, such as 90.  kUnsupported if
// the binary has none, or only compressed PTX.  Any other image is zero-terminated PTX text.
// REQUIRES: the image is as long as its header says.
Result<Code> code_in(const void* image, int architecture);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_FAT_BINARY_H_
