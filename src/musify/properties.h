// SPDX-License-Identifier: Apache-2.0
//
// Properties of a port of every text: the oracle of its fuzz target and property tests.
#ifndef MC_MUSIFY_PROPERTIES_H_
#define MC_MUSIFY_PROPERTIES_H_

#include <string_view>

#include "musify/rules.h"

namespace mc::musify {

// Aborts by MC_CHECK unless ports of `text`, as C++, as Python and as a message, keep these: a
// refused text and one without changes come back as they are; places of findings and changes lie
// in the text; a message, and a port to CUDA where lines are to stay, has as many lines.
void check_properties(std::string_view text, const Rules& rules);

}  // namespace mc::musify

#endif  // MC_MUSIFY_PROPERTIES_H_
