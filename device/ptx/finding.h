// SPDX-License-Identifier: Apache-2.0
//
// Finding: a kernel's fault, or the reason why it could not continue, with the source location.
//
// Findings hold no addresses and no times, so that the same launch gives the same text each time.
// Equal faults at one source location are one finding with a count, and the threads of the first.
#ifndef MC_PTX_FINDING_H_
#define MC_PTX_FINDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mc::ptx {

enum class FindingKind : uint8_t {
  // The kernel continues after these findings.
  kSharedRace,  // Two threads touch a word, one writes, and no barrier is between them.
  // The same in global memory, within a block or between blocks; also a read-only (non-coherent)
  // load of a word that any thread of the launch wrote.
  kGlobalRace,
  kStreamRace,       // Work of two streams touches a word, one writes, and nothing orders them.
  kHostRace,         // The host touches managed memory that a kernel may still use.
  kHostAccess,       // The host touches memory that only the device has.
  kUnwrittenCopy,    // A copy of unwritten bytes to the host.
  kUnwrittenShared,  // A read of shared memory that no thread of the block wrote.
  kUnwrittenGlobal,  // A read of unwritten global memory that affects results.
  kShuffleSource,    // A thread is not in the mask of its own instruction, or lanes are missing.
  // These findings end the launch.
  kOutOfBoundsRead,
  kOutOfBoundsWrite,
  kMisaligned,        // The address is not a multiple of the access size.
  kDivergentBarrier,  // Threads of a block wait at different barriers.
  kDeadlock,          // No thread of the block can continue.
  kTrap,
  kAssertion,
  kBadCall,      // An indirect call of an address that is not a function.
  kStepLimit,    // The launch ran for longer than its budget.
  kStackLimit,   // Calls are nested too deeply.
  kLaunchLimit,  // The launch's shape or parameters are invalid.
  kUnsupported,  // A thread reached an instruction that is not supported; no fault of a kernel.
};

// The name of the kind in verdicts (docs/verdict.md), where some kinds are one.
std::string_view name_of(FindingKind kind);
// True if a finding of this kind ends the launch.
bool ends_launch(FindingKind kind);

struct ThreadPosition {
  uint32_t block[3] = {};
  uint32_t thread[3] = {};
};

struct Finding {
  FindingKind kind = FindingKind::kTrap;
  std::string kernel;
  std::string file;  // Empty if the module has no source line.
  int line = 0;
  std::string instruction;  // `st.shared.f32`
  std::string array;        // The variable or allocation, or empty.
  std::string detail;
  std::optional<ThreadPosition> thread;
  std::optional<ThreadPosition> other;  // The second thread of a race.
  int64_t count = 1;
};

// One line, such as:
// shared_race: kernel row_sums, sum.cu:14, ld.shared.f32, array "partial": a read of what another
// thread wrote without a barrier between; thread (0,0,0) of block (0,0,0), thread (32,0,0) of ...
std::string describe(const Finding& finding);

}  // namespace mc::ptx

#endif  // MC_PTX_FINDING_H_
