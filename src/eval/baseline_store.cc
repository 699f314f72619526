// SPDX-License-Identifier: Apache-2.0
#include "eval/baseline_store.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::eval {
namespace {

using Json = nlohmann::json;

// The version of the measurement: it changes with the method.
constexpr const char* kProtocol = "baseline/2";
constexpr size_t kFileMax = 64 << 10;

Json json_of(const task::Estimate& estimate) {
  return {{"median", estimate.median}, {"low", estimate.low}, {"high", estimate.high}};
}

task::Estimate estimate_of(const Json& json) {
  return {json.at("median").get<double>(), json.at("low").get<double>(),
          json.at("high").get<double>()};
}

bool is_sound(const task::Estimate& estimate) {
  return 0 < estimate.low && estimate.low <= estimate.median && estimate.median <= estimate.high &&
         std::isfinite(estimate.high);
}

bool is_sound(const CompiledBaseline& baseline) {
  return is_sound(baseline.speedup_eager) && is_sound(baseline.time_us);
}

}  // namespace

std::filesystem::path BaselineStore::path_of(const BaselineKey& key) const {
  MC_CHECK(!key.task_code.empty() && !key.mode.empty());
  const std::string hash =
      content_hash({kProtocol, key.task_code, key.mode, key.device, key.pytorch, key.protocol});
  return directory_ / (hash.substr(0, 32) + ".json");
}

std::optional<CompiledBaseline> BaselineStore::find(const BaselineKey& key) const {
  const auto text = read_file(path_of(key), kFileMax);
  if (!text) return std::nullopt;
  try {
    const Json json = Json::parse(*text);
    const CompiledBaseline kept{estimate_of(json.at("speedup_eager")),
                                estimate_of(json.at("time_us"))};
    if (is_sound(kept)) return kept;
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;  // The baseline is measured again, and the file replaced.
  }
}

Status BaselineStore::keep(const BaselineKey& key, const CompiledBaseline& baseline) const {
  MC_CHECK(is_sound(baseline));
  const Json json{{"speedup_eager", json_of(baseline.speedup_eager)},
                  {"time_us", json_of(baseline.time_us)},
                  {"mode", key.mode},
                  {"device", key.device},
                  {"pytorch", key.pytorch}};
  std::error_code failure;
  std::filesystem::create_directories(directory_, failure);
  MC_TRY_VOID(write_file_atomically(path_of(key), json.dump(2) + "\n"), "keep a baseline");
  return ok();
}

// Both are ratios to the same eager program; their errors are independent.
task::Estimate speedup_over(const CompiledBaseline& baseline, const task::Estimate& eager) {
  MC_CHECK(is_sound(baseline) && is_sound(eager));
  const task::Estimate& by = baseline.speedup_eager;
  const double median = eager.median / by.median;
  const double below =
      std::hypot(std::log(eager.median / eager.low), std::log(by.high / by.median));
  const double above =
      std::hypot(std::log(eager.high / eager.median), std::log(by.median / by.low));
  return {median, median * std::exp(-below), median * std::exp(above)};
}

}  // namespace mc::eval
