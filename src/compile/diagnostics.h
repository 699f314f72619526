// SPDX-License-Identifier: Apache-2.0
//
// The output of g++, nvcc and the linker as data.  Each of nvcc's programs speaks in its own way:
// the front end, the preprocessor and host compiler (g++), ptxas, and nvcc itself.
#ifndef MC_COMPILE_DIAGNOSTICS_H_
#define MC_COMPILE_DIAGNOSTICS_H_

#include <string>
#include <string_view>
#include <vector>

#include "compile/extension.h"
#include "task/verdict.h"

namespace mc::compile {

inline constexpr size_t kDiagnosticsMax = 32;

// The errors first, then the rest, at most `num_max`, in the candidate's own lines where they
// map.  Names of kernels are demangled; headers go by the name that one would include; names of
// temporary files are left out.  An error in a header is placed where the candidate's own code
// asked for it (used its template or macro), if the compiler tells.
std::vector<task::Diagnostic> parse_diagnostics(std::string_view output,
                                                const LocationMapper& mapper,
                                                size_t num_max = kDiagnosticsMax);

// True if the first of them lies in a header that is not the candidate's, and no use of a template
// or macro by the candidate led there.
bool starts_outside(const std::vector<task::Diagnostic>& diagnostics, const LocationMapper& mapper);

// The outcome of a candidate whose headers do not compile without it.
task::Unsupported outside(const task::Diagnostic& first);

// "/opt/torch/include/ATen/Tensor.h" as one would include it: "ATen/Tensor.h".
std::string short_path(std::string_view path);
// All absolute paths in `text` so.
std::string with_short_paths(std::string_view text);

// Errors first, at most `num_max`.
std::vector<task::Diagnostic> errors_first(std::vector<task::Diagnostic> diagnostics,
                                           size_t num_max = kDiagnosticsMax);

}  // namespace mc::compile

#endif  // MC_COMPILE_DIAGNOSTICS_H_
