// SPDX-License-Identifier: Apache-2.0
//
// Which names of a C++ source stand for tensors, as far as tokens tell: parameters and variables
// declared as Tensor, and `auto` variables set to what surely is one.  Knows no scopes: a name that
// is a tensor somewhere is one everywhere outside of device code.
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

// The methods that are called in a chain on the tensor that ends before `i` (the token of a `.` or
// `->`), as indices of their names, up to the first that gives no tensor.
std::vector<std::size_t> methods_after(std::string_view source, const lex::Code& code,
                                       std::size_t i);

}  // namespace mc::legality

#endif  // MC_LEGALITY_TENSOR_NAMES_H_
