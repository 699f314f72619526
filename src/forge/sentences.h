// SPDX-License-Identifier: Apache-2.0
//
// The text of data/forge/sentences.json, which the build embeds into the program.
#ifndef MC_FORGE_SENTENCES_H_
#define MC_FORGE_SENTENCES_H_

namespace mc::forge {

extern const char* const kSentences;

}  // namespace mc::forge

#endif  // MC_FORGE_SENTENCES_H_
