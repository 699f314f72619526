// SPDX-License-Identifier: Apache-2.0
//
// The code in a fat binary, which is what nvcc puts into an object file for the driver.
//
// A fat binary is a header and entries behind it, one for each architecture, with PTX or machine
// code.  NVIDIA does not document it; the fields that are read here were found in binaries of
// nvcc 13.0.
#ifndef MC_PTX_DRIVER_FAT_BINARY_H_
#define MC_PTX_DRIVER_FAT_BINARY_H_

#include <string_view>

#include "core/result.h"

namespace mc::ptx_driver {

struct Code {
  std::string_view ptx;
  std::string_view machine_code;  // The same architecture's; empty where there is none.
};

// The PTX for the newest architecture that is at most `architecture`, such as 90.  kUnsupported
// where the binary has none, or a compressed one.  Anything but a fat binary is the text itself,
// which ends with a zero.  REQUIRES: the bytes that the header counts are there.
Result<Code> code_in(const void* image, int architecture);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_FAT_BINARY_H_
