// SPDX-License-Identifier: Apache-2.0
//
// Words: the sentences of samples as a grammar.  A sentence has a name and at least six forms with
// the same slots; which form is written follows from a seed.  Every number in a text is a slot of a
// sentence, so that parsed() finds it again and a test can compare it with the graph.
#ifndef MC_FORGE_WORDS_H_
#define MC_FORGE_WORDS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forge/random.h"

namespace mc::forge {

using Slots = std::map<std::string, std::string>;

struct Fact {
  std::string sentence;
  Slots slots;
};

// One sentence.  REQUIRES: the grammar has it, and `slots` has all that its forms name.
std::string phrased(std::string_view sentence, const Slots& slots, Random& random);

// The facts that a line may state, one for each form that it matches; empty where it is no
// sentence of the grammar.
std::vector<Fact> parsed(std::string_view line);

// The names of all sentences, and the forms of one.
std::vector<std::string> sentences();
std::vector<std::string> forms_of(std::string_view sentence);

}  // namespace mc::forge

#endif  // MC_FORGE_WORDS_H_
