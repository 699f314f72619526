// SPDX-License-Identifier: Apache-2.0
//
// Byte pair encoding of one pre-token: of all adjacent pairs that have a merge rule, the pair with
// the earliest rule is merged (the leftmost of equal ones), until no pair has a rule.  (Sennrich et
// al., Neural Machine Translation of Rare Words with Subword Units, 2016.)
#ifndef MC_MODEL_BPE_H_
#define MC_MODEL_BPE_H_

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mc::model {

struct Merge {
  int32_t rank;
  int32_t id;  // The id of the merged token.
};

// The merge rules.  A key is a pair of ids, the left one in the upper half.
using Merges = std::unordered_map<uint64_t, Merge>;

inline uint64_t merge_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// Merges the symbols of one pre-token.  O(n log n).
std::vector<int32_t> merge_all(const Merges& merges, std::vector<int32_t> symbols);

}  // namespace mc::model

#endif  // MC_MODEL_BPE_H_
