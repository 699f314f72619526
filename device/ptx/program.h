// SPDX-License-Identifier: Apache-2.0
//
// Program: a kernel, decoded for warps with a given number of lanes.
//
// Each function becomes a row of Steps. A Step holds the handler that executes it and where its
// operands are in a frame: for each register an array with one element a lane, so that a handler
// is a loop over lanes which the compiler vectorises. Predicates are masks, one bit a lane.
// Constants, parameters and special registers are arrays in the frame, too: a handler reads all
// operands in one way. Registers whose lives do not overlap share a row.
//
//   `frame`:  zeros | constants, parameters, tid... | registers | predicates | call parameters
//
// A register that may be read before it is written begins as Source::kUnset.
#ifndef MC_PTX_PROGRAM_H_
#define MC_PTX_PROGRAM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/module.h"

namespace mc::ptx {

// Backward branches of a warp until other lanes, warps and blocks run.
constexpr int kTurn = 256;
// The same in a cooperative launch, most of whose blocks spin at the grid's barrier.
constexpr int kCooperativeTurn = 16;

// This many steps of a loop, a function or a block cost as much as one backward branch, so that
// iterations of long and short loops use the budget in proportion to their length.
constexpr int64_t kStepsOfBranch = 64;

struct Warp;
struct Step;
struct Code;

// Executes a step for the active lanes and returns the next one, or null when the warp's present
// lanes cannot go on (they wait, diverged or left).
using Handler = const Step* (*)(Warp&, const Step*);

struct Step {
  Handler run = nullptr;
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;  // Offsets in the frame; d is the result.
  uint32_t flags = 0;                          // The handler's own.
  int64_t immediate = 0;
  const Step* target = nullptr;  // The target of a branch.
  const Step* join = nullptr;  // The step at which the lanes of a branch meet again; null: the end.
  const uint32_t* list = nullptr;  // More frame offsets: vector parts, matrix fragments.
  const Code* callee = nullptr;
  int site = 0;         // An access's number in its program.
  int instruction = 0;  // A position in Function::instructions.
};

// Flags of steps that access memory: the low bits are a Space.
constexpr uint32_t kSpaceMask = 7;
constexpr uint32_t kWideAddress = 8;  // The register of the address has 64 bits.
constexpr uint32_t kStrong = 16;      // Accesses that are volatile, relaxed, acquire or release.
constexpr uint32_t kReadOnly = 32;    // Loads of words that nothing writes during the launch.
constexpr uint32_t kBlockScope = 64;  // Strong accesses of block scope.
constexpr uint32_t kUnread = 512;     // Atomics with an unused result, which acquire nothing.
constexpr uint32_t kVolatile = 256;   // Volatile accesses, which are not atomic in C++.

// A flag of asynchronous copies: kWideAddress for the source; kWideAddress itself is for the
// target.
constexpr uint32_t kFromWide = 128;

// Flags of steps with a predicate.
constexpr uint32_t kAlways = 1;
constexpr uint32_t kNegated = 2;
constexpr uint32_t kNegatedSecond = 4;

// A flag of collective steps in warps of more than 32 lanes: the mask is of the whole warp. The
// decoder sets it for MUSA's instructions, whose mask register is named kWarpMask:
// device/musa/warps_of_128.cuh.
constexpr uint32_t kWholeWarp = 64;
constexpr const char* kWarpMask = "mc_warp_mask";

// Flags of barriers. The number of the barrier is at c.
constexpr uint32_t kBarrierCounts = 8;    // The threads that it waits for are at b.
constexpr uint32_t kBarrierReduces = 16;  // A predicate at a, the result at d; see kBarrierPopc.
constexpr uint32_t kBarrierArrives = 32;  // The thread does not wait.
// Immediates of barriers that reduce.
constexpr int64_t kBarrierPopc = 0, kBarrierAnd = 1, kBarrierOr = 2;

// Addresses of the generic space. An address of shared or local memory is an offset in its window.
constexpr uint64_t kGlobalBase = uint64_t{0x10} << 40;
constexpr int kWindowShift = 40;
constexpr uint64_t kSharedWindow = uint64_t{0x7E} << kWindowShift;
constexpr uint64_t kLocalWindow = uint64_t{0x7D} << kWindowShift;
constexpr uint64_t kParamWindow = uint64_t{0x7C} << kWindowShift;
// Functions have addresses, which only indirect calls can use.
constexpr uint64_t kFunctionBase = uint64_t{0x7B} << kWindowShift;

enum class Source : uint8_t {
  kConstant,
  kParameter,
#define MC_SPECIAL(source, name, value) source,
#include "ptx/specials.inc"
#undef MC_SPECIAL
  kLocalAddress,  // The bits are an offset among the function's local variables.
  kUnset,         // Pseudo-random bytes; width 0 is a predicate.
};

// An array of the frame that is filled before the code runs.
struct FrameValue {
  uint32_t offset = 0;
  int width = 4;
  Source source = Source::kConstant;
  uint64_t bits = 0;  // A constant, or a parameter's offset.
  int bytes = 0;      // The bytes of a parameter in memory.
  bool is_signed = false;
};

// A .param variable: for each lane, one after the other, its bytes.
struct ParamArea {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct Code {
  const Function* function = nullptr;
  std::vector<Step> steps;
  std::vector<std::vector<uint32_t>> lists;
  std::vector<std::vector<const Step*>> targets;  // Targets of indexed branches.
  std::vector<FrameValue> values;
  std::vector<ParamArea> parameters, results;  // Areas of a function that is called.
  uint32_t frame_bytes = 0;
  uint32_t local_bytes = 0;
};

struct SharedArray {
  uint32_t begin = 0, end = 0;
  std::string name;
};

struct Program {
  std::shared_ptr<const Module> module;
  const Function* kernel = nullptr;
  int lanes = 32;
  std::vector<std::unique_ptr<Code>> codes;  // The first one is the kernel's.
  std::vector<const Code*> callable;  // The index is the number in a function's address; or null.
  std::vector<SharedArray> shared_arrays;  // In the order of their offsets.
  uint32_t shared_bytes = 0;               // Without the launch's dynamic part, behind them.
  uint32_t parameter_bytes = 0;
  uint32_t frame_bytes_max = 0;  // The largest of all codes.
  int granule_shift = 2;         // Log2 of the bytes per shadow word: the narrowest access.
  int num_sites = 0;
  // A description of each instruction that is not supported; a thread that reaches it ends the
  // launch.
  std::vector<std::string> unsupported;
  bool blocks_communicate = false;  // Global memory has atomics or strong accesses.
  bool has_strong_words = false;    // Loads or stores are strong, or words are exchanged.
  bool has_fences = false;          // Fences are of the device's scope.
  bool has_calls = false;
  bool has_loops = false;
};

}  // namespace mc::ptx

#endif  // MC_PTX_PROGRAM_H_
