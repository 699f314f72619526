// SPDX-License-Identifier: Apache-2.0
//
// Rules on the compiler flags that a candidate asks for: extra_cflags, extra_cuda_cflags and
// extra_ldflags of load_inline and load.  The policy's lists say which pass (they only tune or
// define), which are dropped (harmless, and none of the candidate's business: the architecture),
// and everything else is a finding.
//
//   CheckedFlags checked = check_flags(policy, {{"-O2"}, {"-O3 -gencode", "arch=..."}, {}});
//   checked.passed.cuda == {"-O3"}; checked.findings.empty()
#ifndef MC_LEGALITY_FLAGS_H_
#define MC_LEGALITY_FLAGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/verdict.h"

namespace mc::legality {

// The bytes of all flags of an extension; a compiler takes no more on its command line than some of
// these.
inline constexpr std::size_t kFlagBytesMax = 32 << 10;

struct CompilerFlags {
  std::vector<std::string> cxx;   // extra_cflags
  std::vector<std::string> cuda;  // extra_cuda_cflags
  std::vector<std::string> link;  // extra_ldflags
};

struct CheckedFlags {
  CompilerFlags passed;  // One flag an item, its value joined to it: what compilers may be given.
  std::vector<task::RuleFinding> findings;  // Without a place; at most kFindingsMax.
};

// Reads the flags as the shell would that load_inline hands them to: an item may hold several, and
// an option's value may be an item of its own.  What -D defines is held against the rules on
// sources too.
CheckedFlags check_flags(const Policy& policy, const CompilerFlags& flags);

}  // namespace mc::legality

#endif  // MC_LEGALITY_FLAGS_H_
