// SPDX-License-Identifier: Apache-2.0
//
// The state of a launch that handlers see, whatever the number of lanes: memory, a block, a warp.
//
// Everything here is plain data or a function with a body elsewhere. Handlers are compiled for
// instructions that this machine may lack; an inline function of this header that both they and
// the rest of the library used could be taken from either, so it does not matter which.
#ifndef MC_PTX_MACHINE_H_
#define MC_PTX_MACHINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ptx/finding.h"
#include "ptx/operations.h"
#include "ptx/program.h"

namespace mc::ptx {

struct Block;
struct Launch;
class BlockStarts;
class FindingLog;
class GlobalMemory;
struct BlockMemory;

// Shadow memory of a block's shared memory, one word a granule in each row. An epoch is the time
// between two barriers of the block.
struct SharedShadow {
  uint32_t* written_in;  // The epoch of the last write.
  uint32_t* writer;      // Its sync count (16 bits) and thread (10 bits).
  uint32_t* read_in;     // The epoch of the last reads.
  uint32_t* reader;      // Flags, sync count (14 bits) and one of the threads.
  uint32_t* quiet;       // A stamp of reads that would change nothing: see shadow.h.
};

// The range that an access of the code hit last, so that the next need not search for it.
struct SiteRange {
  uint64_t begin = 1, end = 0;
};

// Checks that a launch may do without; reads and writes stay within memory in any case.
struct Checks {
  bool races = true;
};

struct Block {
  Launch* launch = nullptr;
  BlockMemory* memory = nullptr;
  const Program* program = nullptr;
  // Memory.
  uint8_t* shared = nullptr;
  uint32_t shared_bytes = 0;
  uint8_t* local = nullptr;  // Each thread's own bytes, one behind the other.
  uint32_t local_stride = 0;
  const uint8_t* parameters = nullptr;
  uint8_t* global = nullptr;  // The place where device address 0 would be.
  uint32_t* global_written_in = nullptr;
  uint32_t* global_writer = nullptr;
  SharedShadow shadow{};
  SiteRange* sites = nullptr;
  // Shape.
  uint32_t id[3] = {};
  uint64_t number = 0;
  uint32_t threads = 0;
  uint32_t context = 0;  // A number of its own among the blocks that are under way.
  // Time: epochs of all launches are in one row, so that old shadow words need no clearing.
  uint32_t launch_epoch = 1, first_epoch = 1, epoch = 1;
  bool checks_races = true;
  bool stopped = false;
  uint64_t clock = 0;
};

struct Warp {
  uint8_t* frame = nullptr;
  Block* block = nullptr;
  uint32_t index = 0;
  uint32_t sync = 0;  // Counts the times when lanes met.
  int32_t turn = 0;   // Backward branches until others have their turn.
  uint32_t local_base = 0;
  const Code* code = nullptr;
};

struct Launch {
  GlobalMemory* memory = nullptr;
  FindingLog* log = nullptr;
  BlockStarts* starts = nullptr;
  const Program* program = nullptr;
  const Variant* variant = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t shared_dynamic = 0;
  const uint8_t* parameters = nullptr;
  Checks checks;
  int workers = 1;
  size_t contexts_max = 1;  // Blocks that a worker may have under way.
  uint64_t blocks = 1;
  uint32_t launch_epoch = 1;
  int64_t heap_left = 0;  // Bytes for malloc; kernels that call it have one worker.
  std::atomic<uint64_t> next_block{0};
  std::atomic<uint32_t> highest_epoch{1};
  std::atomic<int64_t> turns_left{0};
  std::atomic<int64_t> bytes_left{0};  // Memory of this process that kernels may still take.
  // The first block that ended the launch. Those before it run to their ends, so that the findings
  // do not depend on the workers.
  std::atomic<uint64_t> stop_block{UINT64_MAX};
};

// ---- Functions that handlers call on their slow paths.

// The allocation that holds the address. False if no allocation does.
bool find_allocation(Block& block, uint64_t address, SiteRange& range);

// ---- A block's memory and time: block.cc.

// Sets up what all blocks of a launch share in one context. The result owns the memory.
BlockMemory* open_block(Block& block, Launch& launch, uint32_t context, int lanes);
void release_memory(BlockMemory* memory);
uint8_t* frame_of_warp(BlockMemory* memory, uint32_t warp);
void start_block(Block& block, uint64_t number);
void close_block(Block& block);
void next_epoch(Block& block);
// False: the launch's budget is used up.
bool take_turns(Block& block, int64_t count);
// False: the launch has used its share of this process's memory.
bool take_bytes(Block& block, size_t bytes);

// A thread is its number in its block. The launch ends where ends_launch(kind) says so.
void report(Block& block, const Warp& warp, const Step* step, FindingKind kind, int thread,
            const char* detail);
void report_barrier(Block& block, const Warp& warp, const Step* step, int thread, int other);
void report_access(Block& block, const Warp& warp, const Step* step, bool is_write, int thread,
                   Space space, uint64_t address, int bytes);
void report_shared(Block& block, const Warp& warp, const Step* step, FindingKind kind,
                   uint32_t granule, int thread, int other, const char* detail);
void report_global(Block& block, const Warp& warp, const Step* step, uint64_t address, int thread,
                   uint32_t other_context, uint32_t other_epoch, int other, const char* detail);

// A call of vprintf, malloc, free or the like by one thread, with its bytes of the arguments.
uint64_t call_builtin(Block& block, const Warp& warp, const Step* step, int thread,
                      const uint8_t* arguments);

// A frame for a call, of the program's largest size. Null where the block has used its share, to
// which the bytes of the callee's local variables count.
uint8_t* allocate_frame(Block& block, size_t local_bytes);

}  // namespace mc::ptx

#endif  // MC_PTX_MACHINE_H_
