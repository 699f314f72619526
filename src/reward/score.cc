// SPDX-License-Identifier: Apache-2.0
#include "reward/score.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace mc::reward {
namespace {

constexpr double kFailed = -1;

struct Scorer {
  const ScoreOptions& options;

  std::optional<double> operator()(const task::Unextractable&) const { return kFailed; }
  std::optional<double> operator()(const task::Illegal&) const { return kFailed; }
  std::optional<double> operator()(const task::CompileFailed&) const { return kFailed; }
  std::optional<double> operator()(const task::Crashed&) const { return kFailed; }
  std::optional<double> operator()(const task::TimedOut&) const { return kFailed; }
  std::optional<double> operator()(const task::OutOfMemory&) const { return kFailed; }
  std::optional<double> operator()(const task::Unsupported&) const { return std::nullopt; }
  std::optional<double> operator()(const task::Infra&) const { return std::nullopt; }

  std::optional<double> operator()(const task::Wrong& wrong) const {
    if (!(wrong.q > 0)) return kFailed;
    return -0.5 + 0.5 * std::min(wrong.q, 1.0);
  }
  std::optional<double> operator()(const task::Passed& passed) const {
    const double nu = passed.performance ? passed.performance->speedup_eager.low : 0;
    if (std::isnan(nu)) return 1.0;
    return 1 + options.lambda * std::min(std::max(nu - 1, 0.0), options.nu_max);
  }
};

}  // namespace

std::optional<double> score(const task::Verdict& verdict, const ScoreOptions& options) {
  MC_CHECK(options.lambda >= 0 && options.nu_max >= 0);
  if (task::is_earned_by_any_constant(verdict)) return std::nullopt;
  return std::visit(Scorer{options}, verdict.outcome);
}

}  // namespace mc::reward
