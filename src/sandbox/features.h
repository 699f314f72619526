// SPDX-License-Identifier: Apache-2.0
//
// The protections of the sandbox that this machine supports, found by trying them in a forked
// process.  Example:
//   for (const Feature& feature : probe()) {
//     if (!feature.is_available) print(feature.name, feature.why_not, feature.remedy);
//   }
#ifndef MC_SANDBOX_FEATURES_H_
#define MC_SANDBOX_FEATURES_H_

#include <string>
#include <vector>

namespace mc::sandbox {

struct Feature {
  std::string name;  // The name in protection.h.
  bool is_available = false;
  // The sandbox does not work without it, unless the user allows a weak one.
  bool is_needed = true;
  std::string why_not;  // Empty when available.
  std::string remedy;   // The command or setting that enables it; empty when available.
};

// One feature for each protection, in their order.  Takes some milliseconds; thread-safe.
std::vector<Feature> probe();

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_FEATURES_H_
