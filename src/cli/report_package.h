// SPDX-License-Identifier: Apache-2.0
#ifndef MC_CLI_REPORT_PACKAGE_H_
#define MC_CLI_REPORT_PACKAGE_H_

#include <string>
#include <vector>

#include "core/result.h"

namespace mc::cli {

// Runs a module of the Python package `report` and prints its output.  If its last line is "error:
// …", this is an error that the user can correct.  `what` names the output in error messages.
Status run_package(const std::string& module, const std::vector<std::string>& arguments,
                   const std::string& what);

}  // namespace mc::cli

#endif  // MC_CLI_REPORT_PACKAGE_H_
