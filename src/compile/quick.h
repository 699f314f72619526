// SPDX-License-Identifier: Apache-2.0
//
// QuickCompiler: compiles most CUDA sources in a sixth to a third of nvcc's processor time.
//
// The compiler nvcc reads the headers of host and device four times, and parses the source three
// times.  The quick compiler splits the source (lex/split.h): g++ compiles the host text with a
// precompiled header, and another program (src/cli/kernels) compiles the device text for the
// kernels that the host object needs.  For the device that executes PTX that program uses NVRTC:
// its PTX equals nvcc's except for addresses of shared memory, which have 64 bits, and 32 with
// nvcc.  Code that may be timed is compiled by nvcc, whose machine code is the same as for the
// whole source.
//
// It decides no outcome: wherever it cannot or does not compile, nvcc compiles the whole source,
// and nvcc's messages count.
#ifndef MC_COMPILE_QUICK_H_
#define MC_COMPILE_QUICK_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compile/extension.h"
#include "core/layout.h"

namespace mc::compile {

struct QuickCompiler {
  std::filesystem::path program;   // The program musacoder-kernels.
  std::filesystem::path compiler;  // The toolkit's libnvrtc.so, of nvcc's version, or nvcc.
  // The header at the beginning of C++ sources; its precompiled form is in the same folder.
  std::filesystem::path header;
  std::filesystem::path prelude;  // The text before the device text.
  std::filesystem::path halves;   // The types at::Half and at::BFloat16, for the device.
  // Flags of the device compiler; the candidate's flags follow them.
  std::vector<std::string> device_flags;
  bool is_nvcc() const { return compiler.filename() == "nvcc"; }
};

// The compiler that uses nvcc, where the program is installed; without header and flags.
std::optional<QuickCompiler> quick_compiler(const Layout& layout,
                                            const std::filesystem::path& nvcc);

// The compiler that uses an NVRTC of `release` ("13.0"), where there is one; without header and
// flags.
std::optional<QuickCompiler> find_quick_compiler(const Layout& layout,
                                                 const std::filesystem::path& toolkit,
                                                 const std::filesystem::path& pytorch,
                                                 const std::string& release);

// Splits flags of nvcc into those of the host and the device compiler; nothing where a flag is
// unknown.
struct SidesFlags {
  std::vector<std::string> host, device;
};
std::optional<SidesFlags> flags_of_sides(const std::vector<std::string>& nvcc_flags);

// The texts that are compiled in place of a CUDA unit.
struct QuickSource {
  std::string host, device, kernels;
  bool uses_header = false;  // True if the host text may begin with QuickCompiler::header.
  SidesFlags flags;
};

// Nothing where nvcc has to compile the unit.  REQUIRES: the first piece is the prelude.
std::optional<QuickSource> quick_source(const QuickCompiler& quick, const Unit& unit,
                                        const Extension& extension);

}  // namespace mc::compile

#endif  // MC_COMPILE_QUICK_H_
