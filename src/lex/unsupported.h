// SPDX-License-Identifier: Apache-2.0
//
// CUDA constructs that the CPU emulator does not run, found by their tokens.  A candidate that uses
// one is not judged on the CPU (outcome `unsupported`, never scored), so a construct belongs in the
// table only if the emulator really cannot run it.
#ifndef MC_LEX_UNSUPPORTED_H_
#define MC_LEX_UNSUPPORTED_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lex/code.h"

namespace mc::lex {

struct Unsupported {
  std::string construct;  // The name for a person: "inline PTX (asm)".
  std::string spelling;   // The token that gave it away.
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

// In the order of their places in each region; a construct is named once for each of its lines.
std::vector<Unsupported> unsupported_in(std::string_view source, const std::vector<Code>& regions);

}  // namespace mc::lex

#endif  // MC_LEX_UNSUPPORTED_H_
