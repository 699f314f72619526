// SPDX-License-Identifier: Apache-2.0
//
// Parses the output of g++, nvcc and the linker into diagnostics.  Each of nvcc's programs has its
// own format: the front end, the preprocessor and host compiler (g++), ptxas, and nvcc itself.
#ifndef MC_COMPILE_DIAGNOSTICS_H_
#define MC_COMPILE_DIAGNOSTICS_H_

#include <string>
#include <string_view>
#include <vector>

#include "compile/extension.h"
#include "task/evidence.h"

namespace mc::compile {

inline constexpr size_t kDiagnosticsMax = 32;

// At most `num_max` diagnostics, the errors first, with locations in the candidate's source where
// they map to it.  Names of kernels are demangled; headers have the name that an #include has;
// names of temporary files are left out.  The location of an error in a header is where the
// candidate's own code used the header's template or macro, if the compiler reports that.
std::vector<task::Diagnostic> parse_diagnostics(std::string_view output,
                                                const LocationMapper& mapper,
                                                size_t num_max = kDiagnosticsMax);

// The path in the form of an #include: "ATen/Tensor.h" of "/opt/torch/include/ATen/Tensor.h".
std::string short_path(std::string_view path);
// The text with all absolute paths shortened in this way.
std::string with_short_paths(std::string_view text);

// Errors first, at most `num_max`.
std::vector<task::Diagnostic> errors_first(std::vector<task::Diagnostic> diagnostics,
                                           size_t num_max = kDiagnosticsMax);

}  // namespace mc::compile

#endif  // MC_COMPILE_DIAGNOSTICS_H_
