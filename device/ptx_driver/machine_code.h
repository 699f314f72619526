// SPDX-License-Identifier: Apache-2.0
//
// The registers that kernels use, read from the machine code that ptxas generated.
//
// Machine code is an ELF file.  A kernel NAME is the section ".text.NAME", whose sh_info has the
// number of its symbol in the lower 24 bits; the section ".nv.info" has the registers by symbol.
// NVIDIA does not document this; it was found in code of ptxas 13.0, whose printed numbers agree.
// Older code has the registers in the upper 8 bits of sh_info, too.  The code itself is not used.
#ifndef MC_PTX_DRIVER_MACHINE_CODE_H_
#define MC_PTX_DRIVER_MACHINE_CODE_H_

#include <map>
#include <string>
#include <string_view>

namespace mc::ptx_driver {

// The registers per thread, by kernel name.  The file may be any bytes: a kernel with an impossible
// number, or with two numbers, is left out.
std::map<std::string, int, std::less<>> registers_in(std::string_view elf);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_MACHINE_CODE_H_
