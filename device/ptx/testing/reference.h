// SPDX-License-Identifier: Apache-2.0
//
// The reference: a second, slow and obvious executor of PTX, with which tests compare the first.
//
// It interprets one thread at a time over the parsed Module and shares nothing else with the
// executor. The threads of a block run one after the other, each until it ends or reaches a
// collective instruction (a barrier, a shuffle, a vote). When no thread can continue, each
// collective instruction that all its threads have reached is executed. The reference checks only
// that each access is inside its memory; it does not find races. An example, where `memory` has the
// input at 0x100000 and the output at 0x200000:
//
//   MC_TRY_VOID(run_reference({.module = module, .kernel = "k", .block = {64, 1, 1},
//                         .parameters = arguments.bytes()}, memory), "reference");
//
// The reference has no wmma, textures, printf and malloc.
#ifndef MC_PTX_TESTING_REFERENCE_H_
#define MC_PTX_TESTING_REFERENCE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "ptx/module.h"

namespace mc::ptx {

struct ReferenceLaunch {
  const Module& module;
  std::string kernel;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t shared_bytes = 0;        // Dynamic shared memory.
  std::vector<uint8_t> parameters;  // The arguments, each aligned to its size.
  int64_t steps_max = 100'000'000;  // Instructions of all threads.
};

// An allocation of global memory.
struct ReferenceMemory {
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
};

// Runs a kernel to its end and changes memory.  kInvalidInput, with the instruction, if the kernel
// has a fault; kUnsupported if the reference lacks an instruction.
Status run_reference(const ReferenceLaunch& launch, std::vector<ReferenceMemory>& memory);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_REFERENCE_H_
