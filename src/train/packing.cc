// SPDX-License-Identifier: Apache-2.0
#include "train/packing.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/hash.h"

namespace mc::train {
namespace {

// The indices of `lengths`, the longest first.
std::vector<size_t> falling(std::span<const int64_t> lengths) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  return order;
}

}  // namespace

std::vector<size_t> epoch_order(size_t count, uint64_t seed, int64_t epoch) {
  const uint64_t epoch_seed = derive_seed(seed, "epoch " + std::to_string(epoch));
  std::vector<std::pair<uint64_t, size_t>> keys;
  for (size_t i = 0; i < count; ++i) {
    keys.emplace_back(derive_seed(epoch_seed, std::to_string(i)), i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<size_t> order;
  for (const auto& [key, number] : keys) order.push_back(number);
  return order;
}

Batches::Batches(std::vector<int64_t> lengths, uint64_t seed, int64_t tokens_min,
                 DataPosition position)
    : lengths_(std::move(lengths)), seed_(seed), tokens_min_(tokens_min), position_(position) {
  MC_CHECK(!lengths_.empty() && tokens_min > 0);
  order_ = epoch_order(lengths_.size(), seed_, position_.epoch);
}

std::vector<size_t> Batches::next() {
  std::vector<size_t> batch;
  for (int64_t tokens = 0; tokens < tokens_min_ && batch.size() < lengths_.size();) {
    if (position_.next == static_cast<int64_t>(order_.size())) {
      position_ = {position_.epoch + 1, 0};
      order_ = epoch_order(lengths_.size(), seed_, position_.epoch);
    }
    batch.push_back(order_[static_cast<size_t>(position_.next++)]);
    tokens += lengths_[batch.back()];
  }
  MC_CHECK(!batch.empty() && position_.next <= static_cast<int64_t>(lengths_.size()));
  return batch;
}

std::vector<std::vector<size_t>> balance_by_length(std::span<const int64_t> lengths,
                                                   size_t num_groups) {
  MC_CHECK(num_groups > 0);
  std::vector<std::vector<size_t>> groups(num_groups);
  std::vector<int64_t> sums(num_groups);
  for (const size_t number : falling(lengths)) {
    const auto least =
        static_cast<size_t>(std::min_element(sums.begin(), sums.end()) - sums.begin());
    groups[least].push_back(number);
    sums[least] += lengths[number];
  }
  return groups;
}

std::vector<std::vector<size_t>> first_fit(std::span<const int64_t> lengths, int64_t capacity) {
  MC_CHECK(capacity > 0);
  std::vector<std::vector<size_t>> packs;
  std::vector<int64_t> room;
  for (const size_t number : falling(lengths)) {
    size_t pack = 0;
    while (pack < packs.size() && room[pack] < lengths[number]) ++pack;
    if (pack == packs.size()) {
      packs.emplace_back();
      room.push_back(capacity);
    }
    packs[pack].push_back(number);
    room[pack] -= lengths[number];
  }
  return packs;
}

}  // namespace mc::train
