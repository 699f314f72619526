// SPDX-License-Identifier: Apache-2.0
//
// Properties of every port: the oracle of the fuzz target and of the property tests.
#ifndef MC_MUSIFY_TESTING_PORT_PROPERTIES_H_
#define MC_MUSIFY_TESTING_PORT_PROPERTIES_H_

#include <string_view>

#include "musify/rules.h"

namespace mc::musify {

// Ports `text` as C++, as Python and as a message, and aborts by MC_CHECK unless: a refused or
// unchanged text is returned as it was; positions of findings and changes are in the text; a
// message, and a port to CUDA whose lines must stay, has the same number of lines.
void check_properties(std::string_view text, const Rules& rules);

}  // namespace mc::musify

#endif  // MC_MUSIFY_TESTING_PORT_PROPERTIES_H_
