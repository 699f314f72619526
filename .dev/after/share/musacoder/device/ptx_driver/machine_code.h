// SPDX-License-Identifier: Apache-2.0
//
// The registers of kernels, as the machine code says that ptxas made of them.
//
// Machine code is an ELF file.  A kernel NAME is the section ".text.NAME", whose sh_info has the
// number of its symbol in the lower 24 bits; the section ".nv.info" has the registers by symbol.
// NVIDIA does not document this; it was found in code of ptxas 13.0, where the numbers agree with
// what ptxas prints.  Older code has the registers in the upper 8 bits of sh_info, too.  The code
// itself is not used.
#ifndef MC_PTX_DRIVER_MACHINE_CODE_H_
#define MC_PTX_DRIVER_MACHINE_CODE_H_

#include <map>
#include <string>
#include <string_view>

namespace mc::ptx_driver {

// A thread's registers by the names of kernels.  The file may be any bytes: kernels of which it
// says no number that is possible, or two numbers, are left out.
std::map<std::string, int, std::less<>> registers_in(std::string_view elf);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_MACHINE_CODE_H_
