// SPDX-License-Identifier: Apache-2.0
//
// The difference of two texts as `diff -u` prints it, which `patch` and `git apply` read.
#ifndef MC_MUSIFY_UNIFIED_DIFF_H_
#define MC_MUSIFY_UNIFIED_DIFF_H_

#include <string>
#include <string_view>

namespace mc::musify {

// "" where the texts are equal.  `before_name` and `after_name` are the names in the first lines.
std::string unified_diff(std::string_view before, std::string_view after,
                         std::string_view before_name, std::string_view after_name);

}  // namespace mc::musify

#endif  // MC_MUSIFY_UNIFIED_DIFF_H_
