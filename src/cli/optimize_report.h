// SPDX-License-Identifier: Apache-2.0
//
// The texts of the command `optimize` about a search: the line of a verdict, the winner, or that
// there is none.
#ifndef MC_CLI_OPTIMIZE_REPORT_H_
#define MC_CLI_OPTIMIZE_REPORT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "store/store.h"
#include "task/verdict.h"

namespace mc::cli {

// True for a verdict that ends the search: a pass that is fast enough, or a pass without timing,
// since without timing a faster answer could not be recognised.
bool ends_search(const task::Verdict& verdict, double enough);

// A line about a verdict: "sample 0  turn 3 of 4  pass         1.83x  best 1.83x".  `best` is
// updated to the sample's best speed-up, including this verdict.
std::string verdict_line(const store::Judgement& judgement, int64_t turns,
                         std::optional<double>& best);

// A module name that Python can import.
std::string module_name(const std::string& stem);

// Prints the best answer; `path` is the module that was written.
void print_winner(std::ostream& out, const store::Judgement& winner,
                  const std::filesystem::path& path);

// Prints the outcomes of a search in which no answer is correct; `folder` is its run.
void print_failure(std::ostream& out, const std::vector<store::Judgement>& all,
                   const std::string& folder);

// The event at the end of a search.  `winner` is null if there is none; `path` is the path of the
// winner's module.
std::string end_of_search(const std::string& run, const store::Judgement* winner,
                          const std::filesystem::path& path);

}  // namespace mc::cli

#endif  // MC_CLI_OPTIMIZE_REPORT_H_
