// SPDX-License-Identifier: Apache-2.0
//
// The registers of kernels, as the machine code says that ptxas made of them.
//
// Machine code is an ELF file.  A kernel NAME is the section ".text.NAME", whose sh_info has the
// number of its symbol in the lower 24 bits and its registers in the upper 8; the section
// ".nv.info" has the registers by symbol once more.  NVIDIA does not document this; it was found in
// code of ptxas 13.0, where both agree with what ptxas prints.  The code itself is not used.
#ifndef MC_PTX_DRIVER_MACHINE_CODE_H_
#define MC_PTX_DRIVER_MACHINE_CODE_H_

#include <map>
#include <string>
#include <string_view>

namespace mc::ptx_driver {

// A thread's registers by the names of kernels.  The file may be any bytes: kernels of which it
// does not say the same in both places are left out.
std::map<std::string, int, std::less<>> registers_in(std::string_view elf);

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_MACHINE_CODE_H_
