// SPDX-License-Identifier: Apache-2.0
#include "legality/kernels.h"

#include <algorithm>

#include <fmt/format.h>

#include "legality/symbols.h"

namespace mc::legality {
namespace {

constexpr size_t kFindingsMax = 8;
constexpr size_t kNameShownMax = 160;

bool may_run(const KernelRules& rules, const task::KernelTime& kernel) {
  if (kernel.owner == "candidate") return true;
  return matches_any(kernel.owner, rules.foreign_owners) &&
         matches_any(kernel.name, rules.foreign_allowed);
}

}  // namespace

std::vector<task::RuleFinding> check_kernels(const Policy& policy,
                                             const std::vector<task::KernelTime>& kernels,
                                             double own_share) {
  const KernelRules& rules = policy.kernels;
  std::vector<task::RuleFinding> findings;
  for (const task::KernelTime& kernel : kernels) {
    if (may_run(rules, kernel) || findings.size() >= kFindingsMax) continue;
    findings.push_back({rules.foreign.id,
                        fmt::format("{}: {} of {}", rules.foreign.message,
                                    kernel.name.substr(0, kNameShownMax), kernel.owner),
                        {}});
  }
  if (own_share < rules.own_share_min) {
    findings.push_back(
        {rules.share.id,
         fmt::format("{}: {:.1f} %, at least {:.0f} % is asked for", rules.share.message,
                     100 * own_share, 100 * rules.own_share_min),
         {}});
  }
  return findings;
}

}  // namespace mc::legality
