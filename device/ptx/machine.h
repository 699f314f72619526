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
#include <memory>
#include <span>

#include "ptx/finding.h"
#include "ptx/operations.h"
#include "ptx/program.h"
#include "ptx/shadow.h"

namespace mc::ptx {

struct Block;
struct BlockMemory;
struct Counts;
struct Launch;
class FindingLog;
class GlobalMemory;
class Order;
class ShadowMemory;
class UndoLog;
class Unwritten;
struct UnwrittenReads;

// Lanes of a warp, whatever their number.
struct LaneSet {
  uint64_t words[2] = {0, 0};
};

// ---- The parts of order.h that warps and blocks have.
struct Knowledge;

// A fence: the accesses before it that a later release covers, as exclusive end times.
struct Fence {
  LaneSet lanes;       // The lanes that executed it.
  uint32_t own = 0;    // Accesses of these lanes.
  uint32_t warp = 0;   // Accesses of all lanes of the warp.
  uint32_t block = 0;  // Accesses of all threads of the block.
};

// A word that threads synchronise through, as a warp read it: who wrote it last, and when.
struct SeenFlag {
  uint32_t who = 0;     // A thread of another block.
  uint32_t since = 0;   // The time of that write; 0: there is no flag here.
  uint32_t fenced = 0;  // The time of the writer's last fence before it.
};
constexpr int kFlagsSeen = 4;

struct WarpOrder {
  const Knowledge* known = nullptr;
  Fence device, here;  // The last fence of the device's scope, and of any.
  SeenFlag flags[kFlagsSeen];
  uint32_t next_flag = 0;
};

// A read of a word by a block, for writes that depend on it.
struct SeenWord {
  uint64_t granule = 0;
  uint32_t since = 0;
};
constexpr int kWordsSeen = 16;

struct BlockOrder {
  const Knowledge* known = nullptr;  // From the last barrier.
  uint32_t fenced = 0;  // The time of the last fence of the device's scope since a barrier, or 0.
  // For each warp the time before which its accesses were fenced, with a barrier after the fence;
  // null: no such fence yet.
  const uint32_t* published = nullptr;
  SeenWord seen[kWordsSeen];
  uint32_t next_seen = 0;
};

// The range that an access site hit last, which spares the next access a search.
struct SiteRange {
  uint64_t begin = 1, end = 0;
  bool has_unwritten = false;  // Reads of bytes that nothing wrote are noted: unwritten.h.
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
  uint8_t* global = nullptr;  // The host address that device address 0 would have.
  SharedShadow shared_shadow;
  GlobalShadow global_shadow;
  bool saves = false;  // Bytes are saved before they are overwritten: undo_log.h.
  int worker = 0;
  Counts* counts = nullptr;
  SiteRange* sites = nullptr;
  // Shape.
  uint32_t id[3] = {};
  uint64_t number = 0;
  uint32_t name = 0;  // The number modulo kBlocksNamed.
  uint32_t threads = 0, num_warps = 0;
  // Times of its worker's clock: shadow.h.
  uint32_t* now = nullptr;
  uint32_t launch_since = 1;  // The time at which the launch began.
  uint32_t begin = 1;         // The time at which the block began.
  uint32_t since = 1;         // The time of the last barrier.
  // For each warp and other warp the time before which barriers of a part of the block order the
  // other's accesses; null: there was none.
  uint32_t* parts = nullptr;
  BlockOrder order;
  Order* words = nullptr;
  bool reads_by_words = false;       // Reads are recorded by words: shadow.h.
  bool writes_what_it_read = false;  // A thread wrote what its block read.
  int pauses_left = 0;
  int pauses_until_late = -1;  // The pause that lasts until all other blocks wait or have ended.
  bool is_paused = false;      // Other blocks run.
  bool is_late = false;
  bool checks_races = true;
  bool stopped = false;
  uint64_t clock = 0;
};

struct Warp {
  uint8_t* frame = nullptr;
  Block* block = nullptr;
  uint32_t index = 0;
  uint32_t since = 1;  // The last time when all lanes of the warp met, a time of this warp alone.
  uint32_t stamp = 1;  // The time of its accesses; fences and releases advance it, too.
  // For each lane and other lane the time when they met last; null if no part of the warp met
  // separately.
  uint32_t* met = nullptr;
  WarpOrder order;
  int32_t turn = 0;  // Backward branches until other work runs.
  uint32_t local_base = 0;
  const Code* code = nullptr;
};

// The order in which blocks, or the warps of a block, run.
struct Turns {
  uint64_t count = 1, factor = 1, offset = 0;
};

// A warp as it was at a time.
struct WarpTime {
  Warp* warp = nullptr;
  uint32_t time = 0;
};

struct Launch {
  GlobalMemory* memory = nullptr;
  FindingLog* log = nullptr;
  Order* orders = nullptr;  // One for each worker, like the next member.
  Counts* counts = nullptr;
  UndoLog* undo = nullptr;      // Not null if the launch may be undone.
  bool reads_by_words = false;  // Reads are recorded by words: shadow.h.
  std::atomic<bool> writes_what_it_read{false};
  const Unwritten* unwritten = nullptr;
  UnwrittenReads* unwritten_reads = nullptr;  // Null where they are not noted.
  std::atomic<bool> reads_unwritten{false};
  bool may_undo = false;
  bool may_recheck = false;  // Uncertain findings are checked by further runs: device.cc.
  bool is_reversed = false;  // The warps of a block have their turns in the opposite order.
  int shared_byte = -1;      // The byte that fills shared memory before each block, or none.
  const std::unique_ptr<ShadowMemory>* shadows = nullptr;  // One for each worker.
  const Program* program = nullptr;
  const Variant* variant = nullptr;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t shared_dynamic = 0;
  const uint8_t* parameters = nullptr;
  uint64_t grid_workspace = 0;  // The barrier of a cooperative launch.
  bool checks_races = true;
  uint64_t seed = 0;
  uint64_t noise = 0;  // The seed of noise_at().
  uint64_t began = 0;  // The time of the device's clock.
  Turns turns;
  int32_t turn = kTurn;
  // The block that runs late, in launches with a seed: blocks that depend on it without waiting for
  // it get wrong values.
  uint64_t late_block = UINT64_MAX;
  int late_pause = 0;
  bool starts_all = false;  // All blocks begin before a waiting block runs again.
  int workers = 1;
  size_t contexts_max = 1;  // Blocks that a worker may run concurrently.
  uint64_t blocks = 1;
  int64_t heap_left = 0;  // Bytes for malloc; kernels that call it have one worker.
  // The workers share these members. None of them orders other memory: workers join before their
  // results are read, so relaxed operations suffice where a loop uses them.
  std::atomic<uint64_t> next_block{0};
  std::atomic<int64_t> turns_left{0};
  const std::atomic<bool>* is_cancelled = nullptr;
  std::atomic<int64_t> bytes_left{0};  // Memory of this process that kernels may still use.
  std::atomic<bool> stopped{false};
};

// ---- Functions that handlers call on their slow paths.

// The allocation that holds the address, for an access of its origins (origin.h). False if no
// allocation does.
bool find_allocation(Block& block, uint64_t address, bool is_write, SiteRange& range);
// Notes unwritten bytes in a row that threads read, each a number of bytes.
void note_unwritten(Block& block, const Warp& warp, const Step* step, uint64_t address,
                    uint32_t bytes, int thread, int threads);
// Saves the bytes from an address on, which a store is about to overwrite.
void save_bytes(Block& block, uint64_t address, uint64_t bytes);
// A fence by lanes, of the device's scope if is_device, otherwise of the block's.
void fence(Block& block, Warp& warp, LaneSet lanes, bool is_device);
// A barrier of all live threads of a block, whose warps are `warps`. The second form is a barrier
// of a part of them, some of which may only have arrived.
void open_barrier(Block& block, std::span<Warp* const> warps);
void open_part(Block& block, std::span<Warp* const> waiting, std::span<const WarpTime> arrived);
// Notes that some lanes of a warp met.
void meet(Block& block, Warp& warp, LaneSet lanes);

// ---- A block's memory and time: block.cc.

// Sets up what all blocks of a launch share in one context. The result owns the memory.
BlockMemory* open_block(Block& block, Launch& launch, int worker, int lanes);
void release_memory(BlockMemory* memory);
uint8_t* frame_of_warp(BlockMemory* memory, uint32_t warp);
void start_block(Block& block, uint64_t number);
// Seed 0 is numerical order.
Turns turns_of(uint64_t count, uint64_t seed);
uint64_t number_at(const Turns& turns, uint64_t turn);
// A pseudo-random number that depends on the launch, for unset bytes and for clocks.
uint64_t noise_at(const Launch& launch, uint64_t number);
// False if the launch's budget is used up or the launch is cancelled.
bool take_turns(Block& block, int64_t count);
// The text of the finding for that case.
const char* why_out_of_turns(const Block& block);
// False if the launch has used its share of this process's memory.
bool take_bytes(Block& block, size_t bytes);

// Reports a finding; threads are numbers in the block. Ends the launch if ends_launch(kind).
void report(Block& block, const Warp& warp, const Step* step, FindingKind kind, int thread,
            const char* detail, int other = -1);
void report_access(Block& block, const Warp& warp, const Step* step, bool is_write, int thread,
                   Space space, uint64_t address, int bytes);
void report_shared(Block& block, const Warp& warp, const Step* step, FindingKind kind,
                   uint32_t granule, int thread, int other, const char* detail);
void report_global(Block& block, const Warp& warp, const Step* step, uint64_t address, int thread,
                   uint64_t other_block, int other, const char* detail);

// A call of vprintf, malloc, free or the like by one thread, with its bytes of the arguments.
uint64_t call_builtin(Block& block, const Warp& warp, const Step* step, int thread,
                      const uint8_t* arguments);

// Allocates a frame for a call, of the program's largest size. Null if the block has used its
// share, which includes the callee's local variables.
uint8_t* allocate_frame(Block& block, size_t local_bytes);

}  // namespace mc::ptx

#endif  // MC_PTX_MACHINE_H_
