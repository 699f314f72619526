// SPDX-License-Identifier: Apache-2.0
//
// Text that a port adds to a Python module, and that the other direction removes: the import of
// torch_musa, and the flag for the architecture, which load_inline of torch_musa does not add
// itself.
#ifndef MC_MUSIFY_PYTHON_ADDITIONS_H_
#define MC_MUSIFY_PYTHON_ADDITIONS_H_

#include <string>
#include <vector>

#include "musify/edits.h"
#include "musify/port.h"
#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

// Adds the architecture flag to each call with device sources.  Returns warnings about flags that
// are not given as a list in the call.
std::vector<Finding> add_architecture(const std::vector<Word>& words, const Rules& rules,
                                      const std::string& architecture, Edits& edits);
// Adds the import after the first import of torch; nothing if there is none.
void add_import(std::string_view text, const std::vector<Word>& words, Edits& edits);

void remove_architecture(const std::vector<Word>& words, const Rules& rules, Edits& edits);
// Removes the imports of torch_musa.  If lines must stay, each import becomes an assignment of
// torch.cuda to the name, and calls such as importlib.import_module("torch_musa") become
// torch.cuda.
void remove_import(std::string_view text, const std::vector<Word>& words, Lines lines,
                   Edits& edits);

}  // namespace mc::musify

#endif  // MC_MUSIFY_PYTHON_ADDITIONS_H_
