// SPDX-License-Identifier: Apache-2.0
#include "train/ranks.h"

#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "model/parallel.h"

namespace mc::train {
namespace {

// Ranks of one process, a thread each.
void with_ranks(std::vector<RankPlace> places, const std::function<void(Ranks&)>& body) {
  model::in_parallel(places.size(), [&](size_t i) {
    Ranks ranks = Ranks::join(places[i], at::kCPU);
    body(ranks);
  });
}

std::vector<RankPlace> places_of(int count, std::chrono::milliseconds timeout) {
  auto places = places_here(count);
  EXPECT_TRUE(places);
  for (RankPlace& place : *places) place.timeout = timeout;
  return *places;
}

constexpr std::chrono::seconds kLong{60};

TEST(Ranks, SumsAreTheSameOnEveryRank) {
  for (const int count : {2, 3}) {
    std::vector<float> sums(static_cast<size_t>(count));
    std::vector<double> numbers(static_cast<size_t>(count)), firsts(static_cast<size_t>(count));
    with_ranks(places_of(count, kLong), [&](Ranks& ranks) {
      const auto i = static_cast<size_t>(ranks.rank());
      const at::Tensor tensor = at::full({100'003}, ranks.rank() + 1.0, at::kFloat);
      ranks.sum(tensor);
      sums[i] = tensor.max().item<float>() + tensor.min().item<float>();
      numbers[i] = ranks.sum(0.5);
      firsts[i] = ranks.of_first(7 + ranks.rank());
      ranks.finish();
    });
    const float all = static_cast<float>(count * (count + 1));
    EXPECT_EQ(sums, std::vector<float>(static_cast<size_t>(count), all));
    EXPECT_EQ(numbers, std::vector<double>(static_cast<size_t>(count), 0.5 * count));
    EXPECT_EQ(firsts, std::vector<double>(static_cast<size_t>(count), 7));
  }
}

TEST(Ranks, ASingleRankNeedsNoPeers) {
  Ranks ranks = Ranks::join({}, at::kCPU);
  EXPECT_EQ(ranks.sum(2.5), 2.5);
  ranks.finish();
}

TEST(Ranks, ThrowIfAPeerEnded) {
  EXPECT_THROW(with_ranks(places_of(2, kLong),
                          [](Ranks& ranks) {
                            if (ranks.is_first()) ranks.sum(1);
                          }),
               std::exception);
}

TEST(Ranks, ThrowAtTheTimeoutIfAPeerIsSilent) {
  std::promise<void> thrown;
  with_ranks(places_of(2, std::chrono::seconds(5)), [&](Ranks& ranks) {
    if (!ranks.is_first()) return thrown.get_future().wait();
    EXPECT_THROW(ranks.sum(1), std::exception);
    thrown.set_value();
  });
}

class Environment : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                             "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(Environment, WithoutWorldSizeIsOneRank) {
  ::setenv("RANK", "3", 1);
  EXPECT_EQ(place_of_environment()->count, 1);
}

TEST_F(Environment, VariablesOfTorchrunAreRead) {
  ::setenv("WORLD_SIZE", "8", 1);
  ::setenv("RANK", "0", 1);
  ::setenv("LOCAL_RANK", "0", 1);
  ::setenv("LOCAL_WORLD_SIZE", "4", 1);
  ::setenv("MASTER_ADDR", "node1", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  EXPECT_TRUE(place_of_environment()->serves);
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const auto place = place_of_environment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->count, 8);
  EXPECT_EQ(place->local_count, 4);
  EXPECT_EQ(place->host, "node1");
  EXPECT_EQ(place->port, 29500);
  EXPECT_FALSE(place->serves);
}

TEST_F(Environment, AnInvalidVariableIsNamed) {
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "2", 1);
  const auto place = place_of_environment();
  ASSERT_FALSE(place);
  EXPECT_NE(place.error().message.find("RANK is \"2\""), std::string::npos);
}

}  // namespace
}  // namespace mc::train
