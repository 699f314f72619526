// SPDX-License-Identifier: Apache-2.0
//
// The flow of values in a Python file, as far as names show it: the fields of f-strings, the
// aliases of modules, and the literals that become source of an extension.
//
// The analysis knows neither scopes nor types: a name is one variable in the whole file.
#ifndef MC_MUSIFY_PYTHON_FLOW_H_
#define MC_MUSIFY_PYTHON_FLOW_H_

#include <cstddef>
#include <vector>

#include "musify/words.h"

namespace mc::musify {

// A replacement field of an f-string, as offsets in the literal's text.
struct Field {
  std::size_t open = 0;        // The opening brace.
  std::size_t expression = 0;  // The end of the expression, which begins after the brace.
  std::size_t close = 0;       // The byte after the closing brace.
};

// The fields of a literal; empty if it is not an f-string.
std::vector<Field> fields_of(const Word& literal);

// The words of the field's expression, with their offsets in the file.
std::vector<Word> words_of(const Word& literal, const Field& field);

// Sets `module` of the words that are aliases of torch and torch_musa: `import torch as t`,
// `t = torch`.
void set_modules(std::vector<Unit>& units);

// Computes for each word of a Python file whether its value reaches an argument named `…_sources`,
// through variables, arguments, operators and results of functions.
//
//   A = "..."; B = A.replace("x", "y"); load_inline(cuda_sources=[B + TAIL])
std::vector<bool> reaching_sources(const std::vector<Word>& words);

}  // namespace mc::musify

#endif  // MC_MUSIFY_PYTHON_FLOW_H_
