// SPDX-License-Identifier: Apache-2.0
//
// Finds the names of tensors in a C++ source, as far as tokens show: parameters and variables
// declared as Tensor, and `auto` variables initialised with an obvious tensor.  Scopes are ignored:
// a name that is a tensor somewhere counts as one everywhere outside of device code.
#ifndef MC_LEGALITY_TENSOR_NAMES_H_
#define MC_LEGALITY_TENSOR_NAMES_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "legality/policy.h"

namespace mc::lex {
struct Code;
}

namespace mc::legality {

Words tensor_names_in(std::string_view source, const lex::Code& code);

// The methods in a chain of calls on the tensor that ends before `i` (the token of a `.` or `->`),
// as indices of their names, up to the first method that does not return a tensor.
std::vector<std::size_t> methods_after(std::string_view source, const lex::Code& code,
                                       std::size_t i);

}  // namespace mc::legality

#endif  // MC_LEGALITY_TENSOR_NAMES_H_
