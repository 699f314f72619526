// SPDX-License-Identifier: Apache-2.0
//
// QuickCompiler: compiles most CUDA sources in a sixth to a third of nvcc's processor time.
//
// The usual way reads the headers of host and device four times, and parses the source three times.
// Here the source is split (lex/split.h): g++ compiles the host's text with a precompiled header,
// and another program (src/cli/kernels) the device's text for the kernels that the host's object
// asks for.  It does so with NVRTC for the device that executes PTX: PTX is nvcc's but for
// addresses of shared memory, which have 64 bits in it and 32 in nvcc's.  What may be timed is
// compiled by nvcc, whose machine code is the same as for the whole source.
//
// It decides nothing: where it cannot or does not compile, for whatever reason, nvcc compiles the
// source whole, and what nvcc says of it counts.
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
  // A header beside which its precompiled form lies: what C++ sources begin with.
  std::filesystem::path header;
  std::filesystem::path prelude;  // Text before the device's.
  std::filesystem::path halves;   // The types at::Half and at::BFloat16, for the device.
  // Flags of the device's compiler; behind them come those of the candidate.
  std::vector<std::string> device_flags;
  bool is_nvcc() const { return compiler.filename() == "nvcc"; }
};

// The compiler with nvcc, where there is the program; without header and flags.
std::optional<QuickCompiler> quick_compiler(const Layout& layout,
                                            const std::filesystem::path& nvcc);

// The compiler with an NVRTC of `release` ("13.0"), where there is one; without header and flags.
std::optional<QuickCompiler> find_quick_compiler(const Layout& layout,
                                                 const std::filesystem::path& toolkit,
                                                 const std::filesystem::path& pytorch,
                                                 const std::string& release);

// Flags of nvcc, for the compilers of both sides; none where one is not understood.
struct SidesFlags {
  std::vector<std::string> host, device;
};
std::optional<SidesFlags> flags_of_sides(const std::vector<std::string>& nvcc_flags);

// The texts that are compiled in place of a unit of CUDA.
struct QuickSource {
  std::string host, device, kernels;
  bool uses_header = false;  // The host's text may begin with QuickCompiler::header.
  SidesFlags flags;
};

// None where nvcc has to compile the unit.  REQUIRES: the first piece is the prelude.
std::optional<QuickSource> quick_source(const QuickCompiler& quick, const Unit& unit,
                                        const Extension& extension);

}  // namespace mc::compile

#endif  // MC_COMPILE_QUICK_H_
