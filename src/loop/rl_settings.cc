// SPDX-License-Identifier: Apache-2.0
#include "loop/rl_settings.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/hash.h"
#include "loop/judge.h"

namespace mc::loop {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kBatch = 32;
constexpr int64_t kBatchGpuMax = 256;
constexpr int64_t kCacheBytesMax = int64_t{16} << 30;

}  // namespace

std::string settings_json(const RlOptions& o) {
  Json json;
  json["model"] = fs::weakly_canonical(o.model).string();
  json["data"] = fs::weakly_canonical(o.data).string();
  if (o.replay) json["replay"] = fs::weakly_canonical(*o.replay).string();
  if (!o.replay) json["judge"] = verifier_of(o.judge);
  json["steps"] = o.steps;
  json["prompts"] = o.prompts;
  json["samples"] = o.samples;
  json["turns"] = o.turns;
  json["updates"] = o.updates;
  if (o.mini_batches > 1) json["mini_batches"] = o.mini_batches;
  if (o.kl_stop) json["kl_stop"] = *o.kl_stop;
  json["temperature"] = o.generate.sampling.temperature;
  json["top_p"] = o.generate.sampling.top_p;
  json["max_tokens"] = o.generate.tokens_max;
  json["batch"] = *o.batch;
  json["lr"] = o.policy.optimizer.lr;
  json["warmup"] = o.policy.optimizer.warmup;
  json["weight_decay"] = o.policy.optimizer.weight_decay;
  json["clip"] = o.policy.optimizer.norm_max;
  json["eps"] = {o.step.clip.eps_low, o.step.clip.eps_high};
  json["aggregation"] = o.step.aggregation.index();
  json["advantage"] = {static_cast<int>(o.step.advantage.scale), o.step.advantage.std_floor};
  json["score"] = {o.score.score.lambda, o.score.score.nu_max, o.score.speed.dead_zone,
                   o.score.speed.step};
  json["beta"] = o.step.beta;
  json["mirror_pop"] = o.step.mirror_pop ? Json(o.step.mirror_pop->delta) : Json("off");
  if (o.step.mirror_pop && o.step.mirror_pop->mean == rl::DriftMean::kSigned) {
    json["drift_mean"] = "signed";
  }
  json["alpha"] = o.prime_echo.alpha;
  json["b_early"] = o.prime_echo.b_early;
  json["bdr"] = {o.retry.probability, o.retry.capacity, o.retry.replays_max};
  if (!o.replays_show_failure) json["bdr_shows"] = "task";
  if (o.shuffles_rewards) json["reward_order"] = "shuffled";
  if (o.refills_max) json["refills_max"] = *o.refills_max;
  if (o.stale > 0) json["stale"] = o.stale;
  if (o.policy.generate_dtype) json["generate_dtype"] = c10::toString(*o.policy.generate_dtype);
  if (o.overlong_tokens > 0) json["overlong_tokens"] = o.overlong_tokens;
  if (o.kl_end) json["kl_end"] = *o.kl_end;
  if (o.eval) {
    json["eval"] = {fs::weakly_canonical(o.eval->data).string(), o.eval->steps, o.eval->tasks};
  }
  json["seed"] = o.seed;
  json["dtype"] = c10::toString(o.policy.dtype);
  return json.dump();
}

PolicyOptions policy_options(const RlOptions& options) {
  PolicyOptions policy = options.policy;
  policy.temperature = options.generate.sampling.temperature;
  policy.keeps_reference = options.step.beta > 0;
  if (options.stale > 0 && !policy.generate_dtype) policy.generate_dtype = policy.dtype;
  return policy;
}

UpdateOptions update_options(const RlOptions& options, int64_t step, double lr) {
  UpdateOptions update{.step = options.step,
                       .prime_echo = options.prime_echo,
                       .overlong = {options.generate.tokens_max, options.overlong_tokens},
                       .updates = options.updates,
                       .mini_batches = options.mini_batches,
                       .kl_stop = options.kl_stop,
                       .lr = lr,
                       .shuffle_seed = {}};
  if (options.turns == 1) update.prime_echo.b_early.clear();
  if (options.shuffles_rewards) {
    update.shuffle_seed = derive_seed(options.seed, fmt::format("order {}", step));
  }
  return update;
}

int64_t default_batch(const RlOptions& options, const model::Config& config, int64_t length_max) {
  if (!options.policy.device.is_cuda()) return kBatch;
  const auto size = static_cast<int64_t>(
      c10::elementSize(options.policy.generate_dtype.value_or(options.policy.dtype)));
  MC_CHECK(length_max > 0);
  const int64_t bytes = 2 * config.layers * config.kv_heads * config.head_dim * size * length_max;
  const int64_t fitting = std::clamp(kCacheBytesMax / bytes, kBatch, kBatchGpuMax);
  return std::min(fitting, options.prompts * options.samples);
}

}  // namespace mc::loop
