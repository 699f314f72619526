// SPDX-License-Identifier: Apache-2.0
//
// Properties of the parsers of nvcc's output that hold for every text, for their fuzz target and
// property test.  A candidate controls part of that output: names, messages, #pragma message.
#ifndef MC_COMPILE_TESTING_DIAGNOSTICS_PROPERTIES_H_
#define MC_COMPILE_TESTING_DIAGNOSTICS_PROPERTIES_H_

#include <string_view>

namespace mc::compile {

// Aborts by MC_CHECK unless the parse result of `output` is bounded and in order.
void check_nvcc_output(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_TESTING_DIAGNOSTICS_PROPERTIES_H_
