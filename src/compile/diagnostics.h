// SPDX-License-Identifier: Apache-2.0
//
// The compiler's output as data: g++ -fdiagnostics-format=json prints one JSON array a translation
// unit; what the linker says comes as plain text after it.
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

}  // namespace mc::compile

#endif  // MC_COMPILE_DIAGNOSTICS_H_
