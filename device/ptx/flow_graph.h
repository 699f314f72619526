// SPDX-License-Identifier: Apache-2.0
//
// The control flow graph of a function, and the live ranges of its registers.
#ifndef MC_PTX_FLOW_GRAPH_H_
#define MC_PTX_FLOW_GRAPH_H_

#include <cstdint>
#include <vector>

#include "core/result.h"
#include "ptx/module.h"

namespace mc::ptx {

// Instructions that run in sequence, from begin to end. The last block of a graph is the exit,
// which has no instructions.
struct BasicBlock {
  int begin = 0, end = 0;
  std::vector<int> next;
  int join = -1;  // The immediate post-dominator; -1 if the exit cannot be reached.
};

// Returns kUnsupported if the function is too large for the analysis.
Result<std::vector<BasicBlock>> flow_graph(const Function& function);

// Registers that an instruction reads and writes, by their positions in Function::registers.
struct RegisterUse {
  std::vector<int> reads, writes;
};
RegisterUse register_use(const Instruction& instruction);

// The instructions from the first to the last at which a register holds a value that is needed.
struct Life {
  int first = INT32_MAX, last = -1;
  int reads = 0, writes = 0;
  bool is_unset = false;  // Some path reads it without an earlier write.
};
Result<std::vector<Life>> lives_of(const Function& function, const std::vector<BasicBlock>& graph);

}  // namespace mc::ptx

#endif  // MC_PTX_FLOW_GRAPH_H_
