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
void with_ranks(std::vector<RankSetup> setups, const std::function<void(Ranks&)>& body) {
  model::in_parallel(setups.size(), [&](size_t i) {
    Ranks ranks = Ranks::join(setups[i], at::kCPU);
    body(ranks);
  });
}

std::vector<RankSetup> setups_of(int count, std::chrono::milliseconds timeout) {
  auto setups = setups_here(count);
  EXPECT_TRUE(setups);
  for (RankSetup& setup : *setups) setup.timeout = timeout;
  return *setups;
}

constexpr std::chrono::seconds kLong{60};

TEST(Ranks, SumsAreTheSameOnEveryRank) {
  for (const int count : {2, 3}) {
    std::vector<float> sums(static_cast<size_t>(count));
    std::vector<double> numbers(static_cast<size_t>(count)), firsts(static_cast<size_t>(count));
    with_ranks(setups_of(count, kLong), [&](Ranks& ranks) {
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
  EXPECT_THROW(with_ranks(setups_of(2, kLong),
                          [](Ranks& ranks) {
                            if (ranks.is_first()) ranks.sum(1);
                          }),
               std::exception);
}

TEST(Ranks, ThrowAtTheTimeoutIfAPeerIsSilent) {
  std::promise<void> thrown;
  with_ranks(setups_of(2, std::chrono::seconds(5)), [&](Ranks& ranks) {
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
  EXPECT_EQ(setup_of_environment()->count, 1);
}

TEST_F(Environment, VariablesOfTorchrunAreRead) {
  ::setenv("WORLD_SIZE", "8", 1);
  ::setenv("RANK", "0", 1);
  ::setenv("LOCAL_RANK", "0", 1);
  ::setenv("LOCAL_WORLD_SIZE", "4", 1);
  ::setenv("MASTER_ADDR", "node1", 1);
  ::setenv("MASTER_PORT", "29500", 1);
  EXPECT_TRUE(setup_of_environment()->serves);
  ::setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
  const auto setup = setup_of_environment();
  ASSERT_TRUE(setup);
  EXPECT_EQ(setup->count, 8);
  EXPECT_EQ(setup->local_count, 4);
  EXPECT_EQ(setup->host, "node1");
  EXPECT_EQ(setup->port, 29500);
  EXPECT_FALSE(setup->serves);
}

TEST_F(Environment, AnInvalidVariableIsNamed) {
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "2", 1);
  const auto setup = setup_of_environment();
  ASSERT_FALSE(setup);
  EXPECT_NE(setup.error().message.find("RANK is \"2\""), std::string::npos);
}

}  // namespace
}  // namespace mc::train
