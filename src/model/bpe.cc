// SPDX-License-Identifier: Apache-2.0
#include "model/bpe.h"

#include <queue>
#include <tuple>

namespace mc::model {
namespace {

// A pair that may be merged: its rank, the index of its left symbol, and its key when it was found.
// A merge next to it changes the key, and then the candidate is stale.
using Candidate = std::tuple<int32_t, int32_t, uint64_t>;

// The symbols as a linked list, each identified by the index of its first byte.
class Word {
 public:
  Word(const Merges& merges, std::vector<int32_t> symbols)
      : merges_(merges), ids_(std::move(symbols)), next_(ids_.size()), previous_(ids_.size()) {
    const auto count = static_cast<int32_t>(ids_.size());
    for (int32_t i = 0; i < count; ++i) {
      next_[i] = i + 1 < count ? i + 1 : kNone;
      previous_[i] = i - 1;
    }
    for (int32_t i = 0; i < count; ++i) offer(i);
  }

  std::vector<int32_t> merged() {
    while (!queue_.empty()) {
      const auto [rank, place, key] = queue_.top();
      queue_.pop();
      if (is_current(place, key)) merge(place, merges_.at(key).id);
    }
    std::vector<int32_t> ids;
    for (int32_t i = ids_.empty() ? kNone : 0; i != kNone; i = next_[i]) ids.push_back(ids_[i]);
    return ids;
  }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kGone = -2;

  bool is_current(int32_t place, uint64_t key) const {
    return ids_[place] != kGone && next_[place] != kNone &&
           merge_key(ids_[place], ids_[next_[place]]) == key;
  }

  void offer(int32_t place) {
    if (place == kNone || next_[place] == kNone) return;
    const uint64_t key = merge_key(ids_[place], ids_[next_[place]]);
    const auto found = merges_.find(key);
    if (found != merges_.end()) queue_.emplace(found->second.rank, place, key);
  }

  void merge(int32_t place, int32_t id) {
    const int32_t right = next_[place];
    ids_[place] = id;
    ids_[right] = kGone;
    next_[place] = next_[right];
    if (next_[place] != kNone) previous_[next_[place]] = place;
    offer(previous_[place]);
    offer(place);
  }

  const Merges& merges_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> next_;
  std::vector<int32_t> previous_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

std::vector<int32_t> merge_all(const Merges& merges, std::vector<int32_t> symbols) {
  return Word(merges, std::move(symbols)).merged();
}

}  // namespace mc::model
