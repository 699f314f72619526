// SPDX-License-Identifier: Apache-2.0
#ifndef MC_CLI_REPORT_PACKAGE_H_
#define MC_CLI_REPORT_PACKAGE_H_

#include <string>
#include <vector>

#include "core/result.h"

namespace mc::cli {

// Runs a module of the Python package `report` and prints what it prints; its last line is
// "error: …" for what the user can mend.  `what` is not made where that fails.
Status run_package(const std::string& module, const std::vector<std::string>& arguments,
                   const std::string& what);

}  // namespace mc::cli

#endif  // MC_CLI_REPORT_PACKAGE_H_
