// SPDX-License-Identifier: Apache-2.0
//
// The children's responses (protocol.json) in the form that the upper layers keep.  Long texts are
// cut and long lists shortened, since a candidate process's response is hostile input, and a
// judge's response quotes it.  Also the device's report, which is not a message but lines that a
// candidate may have overwritten.
#ifndef MC_EXECUTE_DECODE_H_
#define MC_EXECUTE_DECODE_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "task/evidence.h"
#include "worker/protocol.h"

namespace mc::execute {

struct ShapePlan {
  std::string label;
  std::map<std::string, int64_t> constants;
  task::Reduction reduction;
};

struct TrialPlan {
  int index = 0;
  int shape = 0;  // An index into shapes.
  std::string distribution;
};

struct JudgePlan {
  std::vector<ShapePlan> shapes;
  std::vector<TrialPlan> trials;
  worker::CallMemory call_memory;  // The memory of a call at the main shape.
  bool needs_general = false;      // True if the trials at other shapes count.
  bool only_moves = false;         // True if PyTorch copies could do the reference's work.
  std::string mode;                // The mode of reference and candidate: "train" or "eval".
  task::TaskGrade grade;
};

struct Inspection {
  std::string syntax_error;  // "" when the source parses.
  task::SourceLocation syntax_location;
  std::vector<std::string> classes;
  std::vector<std::string> functions;
  std::vector<task::RuleFinding> findings;
  std::vector<task::RuleFinding> unsupported;  // Kernels in a language that is not supported.
  std::vector<std::string> languages;          // The languages of its kernels in Python.
  bool native = false;                         // True if some source is C++.
};

// Maps a line of a compiled file, within a kernel, to its location in the candidate's source.
using Locate = std::function<task::SourceLocation(std::string_view file, uint64_t line,
                                                  std::string_view kernel)>;

Inspection inspection_of(worker::InspectorInspectResponse response);
JudgePlan plan_of(worker::Plan plan);
// Fills in passed, checks and inputs_mutated of `trial`.
void take_check(worker::JudgeCheckResponse response, task::Trial& trial);
task::StateMatch state_of(worker::CandidateBuildThereResponse response);
// The result, with the number of operators and the length of texts cut to a verdict's limits.
worker::CandidateRunResponse bounded(worker::CandidateRunResponse response);
// The record that a device in software (device/ptx_driver/report.h) writes at the end of a call.
struct CallRecord {
  int64_t number = 0;
  int64_t launches = 0;
  int64_t kernel_us = 0;  // The processor time of the kernels.
  int64_t sectors = 0;    // Sectors of 32 bytes that kernels moved, if counted.
  // The bytes of the outputs, by the origin of their values.
  int64_t from_kernels = 0;
  int64_t from_fills = 0;
  int64_t from_inputs = 0;
  int64_t from_host = 0;
  int64_t from_nowhere = 0;
  bool reads_given = false;   // True if the device saw a kernel read inputs or parameters.
  int64_t unknown_reads = 0;  // Bytes that kernels read although the device saw no write to them.
};
std::vector<CallRecord> decode_calls(std::string_view report);

// The device's findings: one JSON object a line; other lines are ignored.
std::vector<task::KernelFinding> decode_findings(std::string_view report, const Locate& locate);

}  // namespace mc::execute

#endif  // MC_EXECUTE_DECODE_H_
