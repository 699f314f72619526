// SPDX-License-Identifier: Apache-2.0
//
// The report of the command `check`, as JSON, as a text for text_stream, and as SARIF
// (docs/check.md).
#ifndef MC_CLI_CHECK_REPORT_H_
#define MC_CLI_CHECK_REPORT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "check/program.h"

namespace mc::cli {

// The report of one run of a program.
nlohmann::json check_report(const check::Checked& checked);

// Merges the reports of several runs; each finding and each unsupported feature occurs once.
nlohmann::json merged_report(const std::vector<nlohmann::json>& reports);

// The report in SARIF 2.1.0, the format that code hosts accept for annotations.
nlohmann::json sarif_of(const nlohmann::json& report);

// One line of JSON, with its line break.
std::string text_of(const nlohmann::json& json);

// A number with its noun: "1 launch", "2 launches".
std::string counted(size_t number, std::string_view what);

// Prints the findings, the profile and a last line, which says how the program or command ended.
void print_check_report(const nlohmann::json& report, std::string_view ended);

// The exit code of a report; `is_done` is false if the program failed by itself.
int check_exit_code(const nlohmann::json& report, bool is_done);

}  // namespace mc::cli

#endif  // MC_CLI_CHECK_REPORT_H_
