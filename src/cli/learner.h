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

// Runs it with these arguments, its output where ours goes, until it ends.  kUnavailable where it
// is not there or was killed; kInvalidInput where it ended with 2, having said why.
Status run_learner(const Layout& layout, const std::vector<std::string>& arguments);

}  // namespace mc::cli

#endif  // MC_CLI_LEARNER_H_
