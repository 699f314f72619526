// SPDX-License-Identifier: Apache-2.0
#include "loop/rl_settings.h"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace mc::loop {
namespace {

RlOptions with_batch() {
  RlOptions options;
  options.batch = 32;
  return options;
}

TEST(Settings, ContainEachOption) {
  const std::vector<std::function<void(RlOptions&)>> changes = {
      [](RlOptions&) {},
      [](RlOptions& o) { o.refills_max = 0; },
      [](RlOptions& o) { o.refills_max = 2; },
      [](RlOptions& o) { o.stale = 8; },
      [](RlOptions& o) { o.policy.generate_dtype = at::kBFloat16; },
      [](RlOptions& o) { o.overlong_tokens = 9; },
      [](RlOptions& o) { o.kl_end = 0.05; },
      [](RlOptions& o) { o.shuffles_rewards = true; },
      [](RlOptions& o) { o.step.mirror_pop->mean = rl::DriftMean::kSigned; },
      [](RlOptions& o) { o.eval = EvalOptions{.data = "a", .steps = 1, .tasks = 1}; },
      [](RlOptions& o) { o.eval = EvalOptions{.data = "b", .steps = 1, .tasks = 1}; },
      [](RlOptions& o) { o.eval = EvalOptions{.data = "a", .steps = 2, .tasks = 1}; },
      [](RlOptions& o) { o.eval = EvalOptions{.data = "a", .steps = 1, .tasks = 2}; },
  };
  std::set<std::string> found;
  for (const auto& change : changes) {
    RlOptions options = with_batch();
    change(options);
    found.insert(settings_json(options));
  }
  EXPECT_EQ(found.size(), changes.size());
}

TEST(Settings, OmitAnOptionThatIsNotUsed) {
  const std::string json = settings_json(with_batch());
  for (const char* name : {"refills", "stale", "generate_dtype", "overlong", "kl_end", "eval"}) {
    EXPECT_EQ(json.find(name), std::string::npos) << name;
  }
}

TEST(DefaultBatch, IsAWaveOnAGpuIfTheCacheFits) {
  RlOptions options;
  options.prompts = 16;
  options.samples = 8;
  model::Config small;
  small.layers = 30;
  small.kv_heads = 3;
  small.head_dim = 64;
  EXPECT_EQ(default_batch(options, small, 2048), 32) << "on the CPU";
  options.policy.device = at::Device("cuda");
  options.policy.dtype = at::kBFloat16;
  EXPECT_EQ(default_batch(options, small, 2048), 128);
  options.prompts = 64;
  EXPECT_EQ(default_batch(options, small, 2048), 256);
  // One token takes 30 blocks x 2 x 3 heads x 64 x 2 bytes, so 4096 tokens take 90 MiB of 16 GiB.
  EXPECT_EQ(default_batch(options, small, 4096), 182);
  EXPECT_EQ(default_batch(options, small, 40960), 32);
  options.prompts = 1;
  EXPECT_EQ(default_batch(options, small, 2048), 8);
}

}  // namespace
}  // namespace mc::loop
