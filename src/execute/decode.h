// SPDX-License-Identifier: Apache-2.0
//
// The children's answers as typed data.  Everything is bounded here, since a contestant's answer is
// hostile input: long texts are cut, long lists are shortened, missing members take defaults, and a
// member of the wrong type makes the whole answer a protocol error.
#ifndef MC_EXECUTE_DECODE_H_
#define MC_EXECUTE_DECODE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "execute/children.h"
#include "task/verdict.h"

namespace mc::execute {

struct ShapePlan {
  std::string label;
  std::map<std::string, int64_t> constants;
  task::Reduction reduction;
};

struct TrialPlan {
  int index = 0;
  int shape = 0;  // Index into shapes.
  std::string distribution;
};

struct JudgePlan {
  std::vector<ShapePlan> shapes;
  std::vector<TrialPlan> trials;
  double call_bytes = 0;       // Inputs and outputs at the main shape.
  bool needs_general = false;  // The trials at other shapes count.
};

// A contestant's answer to "run".
struct RunAnswer {
  std::map<std::string, int64_t> aten;  // Calls of PyTorch's operators, by "aten::empty".
  // Of the candidate's own kernels, where the contestant counts them.
  std::optional<int64_t> launches;
  std::string sticky;        // The emulator's sticky error, or "".
  std::string check_fields;  // The JSON members that the judge is asked to check.
};

struct InspectorAnswer {
  std::string syntax_error;  // "" when it parses.
  task::Place syntax_place;
  std::vector<std::string> classes;
  std::vector<std::string> functions;
  std::vector<task::RuleFinding> findings;
  std::vector<task::RuleFinding> unsupported;  // Kernels in a language that is not judged.
};

// Where a program counter of a compiled candidate stands in its source.
using Locate = std::function<task::Place(std::string_view module, uint64_t pc)>;

Result<InspectorAnswer> decode_inspection(std::string_view answer);
Result<JudgePlan> decode_plan(std::string_view answer);
// Fills passed, checks and inputs_mutated of `trial`.
Status decode_check(std::string_view answer, task::Trial& trial);
// A contestant's answer to "build".
Result<task::StateMatch> decode_state(std::string_view answer);
Result<RunAnswer> decode_run(std::string_view answer);
// What the emulator reports at the end of a call (emu/runtime/call.h).
struct CallRecord {
  int64_t number = 0;
  int64_t launches = 0;
  std::string digest;  // Of the outputs, as they left the device.
  // Bytes of the outputs by where their values came from.
  int64_t from_kernels = 0;
  int64_t from_inputs = 0;
  int64_t from_host = 0;
  int64_t from_nowhere = 0;
  int64_t unknown_reads = 0;  // Bytes that kernels read and nobody wrote that the emulator saw.
};
std::vector<CallRecord> decode_calls(std::string_view report);

// The emulator's findings: one JSON object a line; other lines are passed over.
std::vector<task::KernelFinding> decode_findings(std::string_view report, const Locate& locate);

}  // namespace mc::execute

#endif  // MC_EXECUTE_DECODE_H_
