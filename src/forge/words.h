// SPDX-License-Identifier: Apache-2.0
//
// Words: the grammar of the samples' sentences.  A sentence has a name and at least six forms with
// the same slots; a seed determines which form is written.  Every number in a text is a slot of a
// sentence.  So lab/texts/text_truth.py, which reads data/forge/sentences.json as well, finds the
// numbers and compares them with the code.
#ifndef MC_FORGE_WORDS_H_
#define MC_FORGE_WORDS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "forge/random.h"

namespace mc::forge {

using Slots = std::map<std::string, std::string>;

// The text of one sentence.  REQUIRES: the grammar has the sentence, and `slots` has all slots of
// its forms.
std::string phrased(std::string_view sentence, const Slots& slots, Random& random);

// The forms of each sentence by its name.
using Grammar = std::map<std::string, std::vector<std::string>, std::less<>>;
const Grammar& grammar();

}  // namespace mc::forge

#endif  // MC_FORGE_WORDS_H_
