// SPDX-License-Identifier: Apache-2.0
// The C interface between compiled candidate code and the emulator's runtime (libmc_emu.so).
//
// Candidate code never names these functions: the CUDA names in `language.h` and `launch.h` are
// thin inline wrappers over them.  Everything is plain C so that one runtime serves objects that
// were compiled against different PyTorch versions.  All symbols start with `mc_emu_`, because the
// process may hold a real libcudart whose symbols would win otherwise.
#ifndef MC_EMU_ABI_H_
#define MC_EMU_ABI_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

// One kernel launch.  `invoke(arguments)` runs the kernel for the current coordinates.
struct McEmuLaunch {
  uint32_t grid[3];
  uint32_t block[3];
  size_t shared_bytes;  // Dynamic shared memory.
  const char* kernel;   // The callee as written, e.g. "K<float>".
  void (*invoke)(void* arguments);
  void* arguments;
  size_t arguments_bytes;
  const void* code;  // An address inside the module that launches.
  int cooperative;   // All blocks resident; grid barriers allowed.
  void* stream;      // A stream that is captured records the launch.
};

// Checks the launch rules and runs the grid to its end; returns a cudaError_t and remembers it as
// the last error.
int mc_emu_launch(const struct McEmuLaunch* launch);

enum McEmuBarrier { kMcEmuBarrierCount = 0, kMcEmuBarrierAnd = 1, kMcEmuBarrierOr = 2 };

// Block barrier; combines `predicate` over the live threads.  `line` identifies the call site.
int mc_emu_barrier(int kind, int predicate, int line);

// Grid barrier of a cooperative launch.
void mc_emu_grid_barrier(int line);
int mc_emu_is_cooperative(void);

enum McEmuWarp {
  kMcEmuWarpSync,
  kMcEmuWarpIndex,
  kMcEmuWarpUp,
  kMcEmuWarpDown,
  kMcEmuWarpXor,
  kMcEmuWarpBallot,
  kMcEmuWarpMatchAny,
  kMcEmuWarpMatchAll,
  kMcEmuWarpAddUnsigned,
  kMcEmuWarpMinUnsigned,
  kMcEmuWarpMaxUnsigned,
  kMcEmuWarpMinSigned,
  kMcEmuWarpMaxSigned,
  kMcEmuWarpAnd,
  kMcEmuWarpOr,
  kMcEmuWarpExclusiveOr,
  // Together with one of them: the mask, and the lanes in the result, are those of the caller's
  // aligned 32 lanes, whatever the warp's size.
  kMcEmuWarpGroup = 64
};

// One lane's part in a warp collective over the lanes of `mask`.  `argument` is the lane, delta or
// lane mask of a shuffle and `width` its segment width.  Blocks until all live lanes arrived.  In a
// warp of 128 lanes the full mask names them all, any other mask the first 32, and lanes in a
// result are the first 32; bit 32 is set where there are others.
uint64_t mc_emu_warp(int kind, uint32_t mask, uint64_t value, int argument, int width, int line);

// The lanes of this warp that reach this line together: of the first 32 (kMcEmuWarpSync), or of the
// caller's aligned 32 (kMcEmuWarpGroup).
uint32_t mc_emu_active_mask(int kind, int line);

void* mc_emu_dynamic_shared(void);
size_t mc_emu_dynamic_shared_bytes(void);

enum McEmuAtomic { kMcEmuAtomicUpdate = 0, kMcEmuAtomicExchange = 1, kMcEmuAtomicLoad = 2 };

// Announces an atomic access before it is done: checks bounds and alignment, and lets other threads
// run when this one spins.  Every kind acquires what was released at the address.  All but a load
// release what the thread's last fence came after: an atomic with release semantics is a fence and
// then this.  Exchanges (CAS, Exch) of shared words may be locks of a block, and need no fence.
void mc_emu_atomic(const volatile void* address, size_t size, int kind);

// Announces a write done by uninstrumented code in a kernel (a copy).
void mc_emu_access(const volatile void* address, size_t size, int is_write);

// One operand of an asm statement: its bits, before and after.
struct McEmuPtxOperand {
  uint64_t value;
  uint64_t high;
};

// Runs inline PTX for this thread.  `is_basic`: the statement has no operands, and a single percent
// sign begins a register.
void mc_emu_ptx(const char* text, struct McEmuPtxOperand* operands, int count, int is_basic,
                int line);

// Copies that are done when they are waited for: cp.async, __pipeline_memcpy_async and their kin.
// `zeros` bytes of zeros follow the copied ones.  kMcEmuEveryGroup waits for those that are not
// committed, too.
#define kMcEmuEveryGroup 0xFFFFFFFFu
void mc_emu_copy_begin(void* to, const void* from, uint32_t size, uint32_t zeros);
void mc_emu_copy_commit(void);
void mc_emu_copy_wait(uint32_t groups_left);

// Gives each lane of a full warp `size` bytes of every lane, in the order of the lanes.
void mc_emu_gather(const void* own, size_t size, void* all, int line);

// An address of shared memory as 32-bit instructions have it, and back.
size_t mc_emu_shared_window(const void* address);
void* mc_emu_shared_address(size_t window);

// The space of an address: kMcEmuShared, kMcEmuGlobal, kMcEmuConstant (a variable of the module) or
// kMcEmuLocal.
enum McEmuSpace { kMcEmuLocal, kMcEmuShared, kMcEmuGlobal, kMcEmuConstant };
int mc_emu_space(const void* address);

void mc_emu_fence(void);        // __threadfence, and __threadfence_system.
void mc_emu_fence_block(void);  // __threadfence_block.
void mc_emu_pause(void);        // Lets other threads run.
[[noreturn]] void mc_emu_assert_fail(const char* expression, const char* file, int line);
[[noreturn]] void mc_emu_trap(void);
// A kernel was launched with more threads than its __launch_bounds__ allow: it does not run.
void mc_emu_break_launch_bounds(uint64_t threads_max);
void mc_emu_unsupported(const char* construct);  // Ends a kernel that reaches it.
int mc_emu_in_kernel(void);
// Moves the five words of cuRAND's XORWOW by count * 2^first_bit steps.
void mc_emu_xorwow_skip(uint64_t count, int first_bit, uint32_t* words);
uint64_t mc_emu_clock(void);
uint64_t mc_emu_nanoseconds(void);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_EMU_ABI_H_
