// SPDX-License-Identifier: Apache-2.0
//
// Locator: from a program counter in a compiled candidate to the candidate's own line.
#ifndef MC_COMPILE_LOCATOR_H_
#define MC_COMPILE_LOCATOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/cpu_runtime.h"
#include "compile/extension.h"
#include "compile/toolchain.h"

namespace mc::compile {

class Locator {
 public:
  Locator(const CpuRuntime& runtime, std::vector<Artifact> artifacts, const LocationMapper& mapper)
      : runtime_(runtime), artifacts_(std::move(artifacts)), mapper_(mapper) {}

  // `module` is the base name of the artifact's library; `pc` the offset in it of an instruction.
  // An empty Place when it cannot be told.  Runs addr2line in the sandbox; remembers answers.
  task::SourceLocation locate(std::string_view module, uint64_t pc);

 private:
  const CpuRuntime& runtime_;
  std::vector<Artifact> artifacts_;
  const LocationMapper& mapper_;
  std::map<std::pair<std::string, uint64_t>, task::SourceLocation> known_;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_LOCATOR_H_
