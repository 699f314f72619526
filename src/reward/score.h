// SPDX-License-Identifier: Apache-2.0
//
// The reward of MusaCoder, section 4.3.  The score:
//   s = -1                                    the candidate failed before the comparison, is
//                                             illegal, or passed no trial (q = 0)
//   s = -0.5 + 0.5 q                          it passed the share 0 < q < 1 of the trials
//   s = 1 + lambda min(max(nu - 1, 0), nu_max)  it is correct and legal, nu times as fast as eager
//
// The lower end of the confidence interval is the speed-up nu, so that noise earns nothing; where
// no time was measured (the CPU backend) s = 1.  Verdicts that are no evidence about the candidate
// (`Unsupported`, `Infra`) have no score, nor have passes that a constant would earn on a trivial
// task: such candidates must be judged again or left out, never averaged.  Example:
//   if (const auto s = score(verdict, {})) use(*s);
#ifndef MC_REWARD_SCORE_H_
#define MC_REWARD_SCORE_H_

#include <optional>

#include "task/verdict.h"

namespace mc::reward {

struct ScoreOptions {
  double lambda = 0.25;  // The weight of the speed-up.
  double nu_max = 2;     // The largest speed-up beyond 1 that counts.
};

// A pure function.  Empty for Unsupported, Infra and any result that a constant would earn, else
// from -1 to 1 + lambda nu_max.  REQUIRES: lambda >= 0 and nu_max >= 0.
std::optional<double> score(const task::Verdict& verdict, const ScoreOptions& options);

}  // namespace mc::reward

#endif  // MC_REWARD_SCORE_H_
