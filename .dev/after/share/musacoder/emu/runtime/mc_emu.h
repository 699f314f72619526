// SPDX-License-Identifier: Apache-2.0
// The emulator's interface for the process that hosts it (the candidate process), in plain C.
//
// The emulator runs CUDA C++ that was compiled by the ordinary C++ compiler.  A host process calls
// `mc_emu_init` once, after its last fork, then loads candidate modules and calls them; launches
// inside them run on a small pool of threads.  What the emulator finds (races, accesses out of
// bounds, ...) is sent to another process as it happens, so it survives a crash.
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
  kMcEmuReportKeyBytes = 32,  // The first message that the report's socket must hold.
  kMcEmuFindingsMax = 16,     // The limit of one call; further findings are dropped.
  kMcEmuReportLost = 97,      // The exit status of a process that can no longer report.
};

// Zero means the default of each field.
typedef struct McEmuOptions {
  uint32_t size;         // sizeof(McEmuOptions): lets the struct grow.
  int32_t report_fd;     // A SOCK_SEQPACKET socket, or -1 for none.  Not closed.
  int32_t workers;       // Threads that run blocks; 0: one for each core.
  uint32_t flags;        // McEmuFlags.
  uint64_t arena_bytes;  // Address space kept for device memory; 0: 256 GiB, or less.
  uint32_t warp_size;    // Threads of a warp, 32 or 128; 0: 32.
} McEmuOptions;

enum McEmuFlags {
  kMcEmuNoRaceChecks = 1,  // Bounds only: faster.
  kMcEmuClosed = 2,        // Device memory is inaccessible to host code; init is final.
                           // The process gets no further threads.
};

// Starts the emulator; NULL means all defaults.  0, or an errno value when an option is none or the
// address space or the report cannot be used.  A second call only replaces report, flags and warp
// size, and nothing (EALREADY) where the first one said kMcEmuClosed.
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

// --- Device memory, for PyTorch's operators.  A range is opened for as long as host code of ours
// works on it; the address decides which allocation, and one outside the arena is ignored.

void mc_emu_open(const void* address);
void mc_emu_close(const void* address);

// One byte (Origin, runtime/arena.h) for each byte of device memory.  Null outside of it.
unsigned char* mc_emu_origins(const void* address);

// Bytes that a copy brought from the device to the host.
void mc_emu_note_to_host(size_t bytes);

// Copies and fills of bytes, on either side, as the CUDA runtime does them.
void mc_emu_copy(void* to, const void* from, size_t size);
void mc_emu_fill(void* to, int value, size_t size);

// Around a call of the candidate's forward, whose inputs were mapped before.  Between the return of
// forward and the end the outputs' bytes are told; the end is reported (runtime/call.h).
void mc_emu_begin_call(void);
void mc_emu_end_forward(void);
// Bytes that the runtime's copies put into another place on the device, since the call began.
uint64_t mc_emu_moved_bytes(void);
int mc_emu_in_call(void);
void mc_emu_note_output(const void* bytes, size_t size, const unsigned char* origins);
// An operator writes here: nothing may write to inputs once forward has returned.
void mc_emu_note_write(const void* to);
void mc_emu_end_call(void);

// Writes one finding of kind "unsupported" on behalf of a shim.
void mc_emu_report_unsupported(const char* detail);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif  // MC_EMU_RUNTIME_MC_EMU_H_
