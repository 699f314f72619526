// SPDX-License-Identifier: Apache-2.0
#include "train/packing.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>

namespace mc::train {
namespace {

std::vector<int64_t> random_lengths(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int64_t> lengths(count);
  for (int64_t& length : lengths) length = 1 + static_cast<int64_t>(random() % 300);
  return lengths;
}

std::vector<size_t> sorted_members(const std::vector<std::vector<size_t>>& groups) {
  std::vector<size_t> members;
  for (const auto& group : groups) members.insert(members.end(), group.begin(), group.end());
  std::sort(members.begin(), members.end());
  return members;
}

std::vector<size_t> up_to(size_t count) {
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}

int64_t sum_of(const std::vector<size_t>& group, const std::vector<int64_t>& lengths) {
  int64_t sum = 0;
  for (const size_t number : group) sum += lengths[number];
  return sum;
}

TEST(Packing, FirstFitFillsPacksWithoutLosingAny) {
  const std::vector<int64_t> lengths = random_lengths(400, 1);
  const auto packs = first_fit(lengths, 1000);
  EXPECT_EQ(sorted_members(packs), up_to(400));
  const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  for (const auto& pack : packs) EXPECT_LE(sum_of(pack, lengths), 1000);
  EXPECT_LE(packs.size(), static_cast<size_t>(total / 1000 + 2));  // The packs are almost full.
}

TEST(Packing, AConversationLongerThanAPackIsAPackOfItsOwn) {
  EXPECT_EQ(first_fit(std::vector<int64_t>{3, 20, 4}, 10),
            (std::vector<std::vector<size_t>>{{1}, {2, 0}}));
}

TEST(Packing, GroupsHaveSimilarSums) {
  const std::vector<int64_t> lengths = random_lengths(50, 2);
  const auto groups = balance_by_length(lengths, 3);
  EXPECT_EQ(sorted_members(groups), up_to(50));
  for (const auto& hand : groups) {
    EXPECT_NEAR(static_cast<double>(sum_of(hand, lengths)),
                static_cast<double>(sum_of(groups[0], lengths)), 300);
  }
  EXPECT_EQ(balance_by_length(std::vector<int64_t>{5}, 2)[1].size(), 0U);
}

TEST(Packing, EachEpochTakesEachConversationOnceInItsOwnOrder) {
  auto first = epoch_order(100, 7, 0);
  EXPECT_NE(first, epoch_order(100, 7, 1));
  EXPECT_NE(first, epoch_order(100, 8, 0));
  EXPECT_EQ(first, epoch_order(100, 7, 0));
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, up_to(100));
}

TEST(Packing, BatchesResumeFromASavedPosition) {
  const std::vector<int64_t> lengths = random_lengths(30, 3);
  Batches whole(lengths, 7, 900, {});
  for (int i = 0; i < 8; ++i) whole.next();
  Batches resumed(lengths, 7, 900, whole.position());
  EXPECT_GT(whole.position().epoch, 0);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(resumed.next(), whole.next());
}

TEST(Packing, ABatchHasEnoughTokensAndNoConversationTwice) {
  const std::vector<int64_t> lengths = {10, 10, 10};
  Batches batches(lengths, 1, 20, {});
  EXPECT_EQ(batches.next().size(), 2U);
  Batches large(lengths, 1, 1000, {});
  EXPECT_EQ(large.next().size(), 3U);
}

}  // namespace
}  // namespace mc::train
