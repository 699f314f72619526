// SPDX-License-Identifier: Apache-2.0
//
// The compilers' output as data.  g++ -fdiagnostics-format=json prints one JSON array a translation
// unit; what the linker says comes as plain text after it.  nvcc prints what its programs say, each
// in its own way: the front end, the preprocessor and host compiler (g++), ptxas, and nvcc itself.
#ifndef MC_COMPILE_DIAGNOSTICS_H_
#define MC_COMPILE_DIAGNOSTICS_H_

#include <string_view>
#include <vector>

#include "compile/extension.h"
#include "task/verdict.h"

namespace mc::compile {

inline constexpr size_t kDiagnosticsMax = 32;

// The errors first, then the rest, at most kDiagnosticsMax, in the candidate's own lines where they
// map.  Text that is not of the expected form is kept as messages without a place.
std::vector<task::Diagnostic> parse_gcc_diagnostics(std::string_view output,
                                                    const PlaceMapper& mapper);

// The same of nvcc's output.  Names of kernels are demangled; names of temporary files are left
// out. An error in a header is placed where the candidate's own code asked for it, if nvcc tells.
std::vector<task::Diagnostic> parse_nvcc_diagnostics(std::string_view output,
                                                     const PlaceMapper& mapper);

// Errors first, at most kDiagnosticsMax.
std::vector<task::Diagnostic> errors_first(std::vector<task::Diagnostic> diagnostics);

}  // namespace mc::compile

#endif  // MC_COMPILE_DIAGNOSTICS_H_
