// SPDX-License-Identifier: Apache-2.0
//
// The program musacoder-learn, started beside this one: what needs libtorch is done there.
#ifndef MC_CLI_LEARNER_H_
#define MC_CLI_LEARNER_H_

#include <string>
#include <vector>

#include "core/layout.h"
#include "core/result.h"

namespace mc::cli {

// Its path.  kInvalidInput where it is not there, as in an installed program.
Result<std::string> find_learner(const Layout& layout);

// Runs it with these arguments, its output where ours goes, until it ends.  kInvalidInput where
// it is not there, or ended with 2 and printed why; kUnavailable where it was killed.
Status run_learner(const Layout& layout, const std::vector<std::string>& arguments);

}  // namespace mc::cli

#endif  // MC_CLI_LEARNER_H_
