// SPDX-License-Identifier: Apache-2.0
//
// Text that a port of a Python module adds, and that the other direction removes again: the import
// of torch_musa, and the flag that names the architecture, which load_inline of torch_musa does not
// add by itself.
#ifndef MC_MUSIFY_PYTHON_ADDITIONS_H_
#define MC_MUSIFY_PYTHON_ADDITIONS_H_

#include <string>
#include <vector>

#include "musify/edits.h"
#include "musify/port.h"
#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

// Adds the architecture flag to each call with sources for the device.  Returns warnings about
// flags that are no list in the call.
std::vector<Finding> add_architecture(const std::vector<Word>& words, const Rules& rules,
                                      const std::string& architecture, Edits& edits);
// Adds the import behind the first one of torch; nothing where there is none.
void add_import(std::string_view text, const std::vector<Word>& words, Edits& edits);

void remove_architecture(const std::vector<Word>& words, const Rules& rules, Edits& edits);
// The imports of torch_musa go.  If lines stay, the name is bound to torch.cuda in their place, and
// calls such as importlib.import_module("torch_musa") have that value.
void remove_import(std::string_view text, const std::vector<Word>& words, Lines lines,
                   Edits& edits);

}  // namespace mc::musify

#endif  // MC_MUSIFY_PYTHON_ADDITIONS_H_
