// SPDX-License-Identifier: Apache-2.0
//
// The loss of one token and its gradient with respect to log pi_new of that token.
// The formulas:
//   r    = exp(log pi_new - log pi_old)
//   L    = -min(r A, clip(r, 1 - eps_low, 1 + eps_high) A)         the clipped objective (PPO,
//                                                                  DAPO)
//   k3   = u - 1 - log u,  log u = log pi_ref - log pi_new         an estimator of KL(new || ref)
//
// A log-ratio is clamped to [-20, 20] before exp; outside, the gradient is 0.  Every
// log-probability is under the full softmax over logits / T, where T is the temperature of the
// rollout.
#ifndef MC_RL_OBJECTIVE_H_
#define MC_RL_OBJECTIVE_H_

namespace mc::rl {

inline constexpr double kLogRatioMax = 20;

struct ClipOptions {
  double eps_low = 0.2;
  double eps_high = 0.28;
};

// The clipping bound that set the gradient to 0.
enum class Clipped { kNo, kLow, kHigh };

struct TokenLoss {
  double value = 0;
  double gradient = 0;  // dL / d log pi_new
  Clipped clipped = Clipped::kNo;
};

// The clipped loss of one token.  `log_ratio` is log pi_new - log pi_old.  Exactly on a bound, the
// gradient is not clipped. REQUIRES: 0 <= eps_low <= 1, eps_high >= 0; A and log_ratio are finite.
TokenLoss clipped_loss(double log_ratio, double A, const ClipOptions& options);

struct KlEstimate {
  double value = 0;
  double gradient = 0;  // The derivative d value / d log pi_new
};

// The k3 estimate for one token.  `log_u` is log pi_ref - log pi_new. REQUIRES: log_u is finite.
KlEstimate kl_estimate(double log_u);

}  // namespace mc::rl

#endif  // MC_RL_OBJECTIVE_H_
