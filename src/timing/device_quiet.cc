// SPDX-License-Identifier: Apache-2.0
#include "timing/device_quiet.h"

#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

namespace mc::timing {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

}  // namespace

Result<bool> is_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                      double judge_s) {
  const Json question{
      {"op", "time"}, {"do", "fill"}, {"bytes", rules.fill_s * speed.fill_gbs * 1e9}};
  MC_TRY(const execute::Reply reply, judge.ask(question.dump(), nullptr, judge_s), "fill");
  const Json took = Json::parse(reply.json);
  const double gbs = took.at("bytes").get<double>() / took.at("seconds").get<double>() / 1e9;
  return gbs >= rules.share_min * speed.fill_gbs;
}

Result<bool> await_quiet(const QuietRules& rules, const DeviceSpeed& speed, execute::Judge& judge,
                         double judge_s) {
  const auto deadline = Clock::now() + Seconds(rules.wait_s);
  for (;;) {
    MC_TRY(const bool quiet, is_quiet(rules, speed, judge, judge_s), "quiet");
    if (quiet || Clock::now() >= deadline) return quiet;
    std::this_thread::sleep_for(Seconds(rules.interval_s));
  }
}

}  // namespace mc::timing
