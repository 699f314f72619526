// SPDX-License-Identifier: Apache-2.0
//
// Rules on the compiler flags of a candidate: extra_cflags, extra_cuda_cflags and extra_ldflags of
// load_inline and load.  The policy's lists contain the flags that pass (they only tune or define)
// and those that are dropped (they do no harm but are not the candidate's choice, such as the
// architecture).  Any other flag is a finding.
//
//   CheckedFlags checked = check_flags(policy, {{"-O2"}, {"-O3 -gencode", "arch=..."}, {}});
//   checked.passed.cuda == {"-O3"}; checked.findings.empty()
#ifndef MC_LEGALITY_FLAGS_H_
#define MC_LEGALITY_FLAGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "legality/policy.h"
#include "task/evidence.h"

namespace mc::legality {

// The bound on the bytes of all flags of an extension; a command line cannot be much longer.
inline constexpr std::size_t kFlagBytesMax = 32 << 10;

struct CompilerFlags {
  std::vector<std::string> cxx;   // extra_cflags
  std::vector<std::string> cuda;  // extra_cuda_cflags
  std::vector<std::string> link;  // extra_ldflags
};

struct CheckedFlags {
  CompilerFlags passed;  // Flags for the compilers; one flag with its value is one item.
  std::vector<task::RuleFinding> findings;  // Findings without a location; at most kFindingsMax.
};

// Parses the flags like the shell that load_inline passes them to: an item may contain several
// flags, and an option's value may be a separate item.  The rules on sources apply to values of -D,
// too.
CheckedFlags check_flags(const Policy& policy, const CompilerFlags& flags);

}  // namespace mc::legality

#endif  // MC_LEGALITY_FLAGS_H_
