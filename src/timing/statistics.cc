// SPDX-License-Identifier: Apache-2.0
#include "timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"

namespace mc::timing {
namespace {

constexpr double kOutside = 0.05;
constexpr double kSigmas = 1.96;  // The quantile of a normal distribution, for the same share.

// The number of samples to leave out at each end: the largest k with 2 P(Bin(n, 1/2) <= k) <= 5 %.
size_t num_left_out(size_t n) {
  double term = std::pow(0.5, static_cast<double>(n));  // P(Bin = 0)
  double below = 0;
  for (size_t k = 0; k < n / 2; ++k) {
    below += term;
    if (2 * below > kOutside) return k == 0 ? 0 : k - 1;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  return n / 2;
}

double widened_by(double ratio, double spread) {
  return std::exp(std::hypot(std::log(ratio), kSigmas * spread));
}

}  // namespace

task::Estimate estimate_median(std::span<const double> samples) {
  MC_CHECK(!samples.empty());
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const size_t n = sorted.size();
  const size_t left_out = num_left_out(n);
  MC_CHECK(left_out < n);
  const double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  return {median, sorted[left_out], sorted[n - 1 - left_out]};
}

task::Estimate widened(const task::Estimate& estimate, double spread) {
  MC_CHECK(spread >= 0);
  if (!(estimate.median > 0) || !(estimate.low > 0)) return estimate;
  return {estimate.median, estimate.median / widened_by(estimate.median / estimate.low, spread),
          estimate.median * widened_by(estimate.high / estimate.median, spread)};
}

}  // namespace mc::timing
