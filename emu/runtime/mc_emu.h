// SPDX-License-Identifier: Apache-2.0
// The emulator's interface for the process that hosts it (the contestant), in plain C.
//
// The emulator runs CUDA C++ that was compiled by the ordinary C++ compiler.  A host process calls
// `mc_emu_init` once, after its last fork, then loads candidate modules and calls them; launches
// inside them run on a small pool of threads.  What the emulator finds (races, accesses out of
// bounds, ...) is appended to a report that another process can map, so it survives a crash.
//
// All functions may be called from one host thread at a time.
#ifndef MC_EMU_RUNTIME_MC_EMU_H_
#define MC_EMU_RUNTIME_MC_EMU_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum {
  kMcEmuReportBytes = 64 * 1024,  // The size that the report's file must have.
  kMcEmuFindingsMax = 16,         // Further findings are dropped.
};

// Zero means the default of each field.
typedef struct McEmuOptions {
  uint32_t size;         // sizeof(McEmuOptions): lets the struct grow.
  int32_t report_fd;     // A file of kMcEmuReportBytes zero bytes, or -1 for none.  Not closed.
  int32_t workers;       // Threads that run blocks; 0: one for each core.
  uint32_t flags;        // McEmuFlags.
  uint64_t arena_bytes;  // Address space kept for device memory; 0: 256 GiB, or less.
} McEmuOptions;

enum McEmuFlags {
  kMcEmuNoRaceChecks = 1,  // Bounds only: faster.
};

// Starts the emulator; NULL means all defaults.  0, or an errno value when the address space or the
// report cannot be mapped.  A second call only replaces report and flags.
int mc_emu_init(const McEmuOptions* options);

// The order of blocks and of the threads of a block, from the next launch on: 0 ascending,
// 1 descending, anything else a shuffle with that seed.
void mc_emu_set_schedule(uint64_t seed);

// The CUDA error that a fault in a kernel left behind (0: none).  As on a GPU it stays until
// `mc_emu_reset`, and every launch meanwhile returns it.
int mc_emu_sticky_error(void);

// Forgets errors, function attributes and duplicates of findings; keeps memory and the report.
void mc_emu_reset(void);

// Device memory: `size` bytes that end at (or, for alignment, up to 15 bytes before) an
// inaccessible page, aligned to 16 bytes, filled with 0xFF.  NULL when there is none left.
void* mc_emu_arena_allocate(size_t size);

// Gives back what allocate or map returned; NULL is allowed.
void mc_emu_arena_release(void* pointer);

// Maps bytes [offset, offset + size) of a file, shared, so that inaccessible pages surround its
// pages.  The pointer is offset modulo the page size into its first page.  NULL and errno on
// failure. REQUIRES: the file reaches to offset + size.
void* mc_emu_arena_map(int fd, uint64_t offset, size_t size);

// Writes one finding of kind "unsupported" on behalf of a shim.
void mc_emu_report_unsupported(const char* detail);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif  // MC_EMU_RUNTIME_MC_EMU_H_
