// SPDX-License-Identifier: Apache-2.0
//
// Words: the sentences of samples as a grammar.  A sentence has a name and at least six forms with
// the same slots; which form is written follows from a seed.  Every number in a text is a slot of a
// sentence, so that tools/text_truth.py, which reads the forms from words.cc, finds it again and
// compares it with the code.
#ifndef MC_FORGE_WORDS_H_
#define MC_FORGE_WORDS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "forge/random.h"

namespace mc::forge {

using Slots = std::map<std::string, std::string>;

// One sentence.  REQUIRES: the grammar has it, and `slots` has all that its forms name.
std::string phrased(std::string_view sentence, const Slots& slots, Random& random);

// The names of all sentences, and the forms of one.
std::vector<std::string> sentences();
std::vector<std::string> forms_of(std::string_view sentence);

}  // namespace mc::forge

#endif  // MC_FORGE_WORDS_H_
