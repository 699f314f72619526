// SPDX-License-Identifier: Apache-2.0
//
// What a judge's contestants need of the device in native code, as C functions for ctypes:
//
//   arena   an allocator over memory that the judge maps too, so that it reads what a timed call
//           returned without the contestant's help;
//   gate    a batch of calls is queued behind a closed gate in the stream, and let run at once;
//   trace   which kernels ran, when, and who owns them, by CUPTI;
//   vendors the libraries that a candidate may not use lose their device code.
//
// Built on first use against the CUDA toolkit of the machine (src/compile/cuda_libraries.h).  It
// runs in the process that runs the candidate, so nothing that it says is believed where the
// supervisor's clock or the judge's comparison can tell (docs/timing.md).
//
// Functions return 0, or the CUresult or CUptiResult that failed.  Not thread-safe, except for the
// arena.
#ifndef MC_DEVICE_H_
#define MC_DEVICE_H_

#include <cstddef>
#include <cstdint>

extern "C" {

// ---- Arena --------------------------------------------------------------------------------------

// Hands out [base, base + nbytes) from now on.  Earlier memory stays in use where it still is.
void mc_arena_open(uint64_t base, uint64_t nbytes);
// Whether all of the last arena was given back.  REQUIRES: one was opened.
int mc_arena_is_whole();
// For torch.cuda.memory.CUDAPluggableAllocator.  Memory is filled with 0xff, which is NaN for every
// floating type.  Beyond the arena's end it comes from the driver, and is not visible to the judge.
void* mc_arena_malloc(size_t nbytes, int device, void* stream);
void mc_arena_free(void* pointer, size_t nbytes, int device, void* stream);

// ---- Gate ---------------------------------------------------------------------------------------

// Shares the page behind a descriptor with the device: 32-bit words gate, ready, done, traced (the
// number of the batch that is to be traced), launches and own launches (of the last batch that is
// done).
int mc_gate_attach(int descriptor);
// Queues into the current context's default stream: wait until the gate has reached `number`, then
// note the time.
int mc_gate_close(uint32_t number);
// The same for a forward that waits for the device: waits on the host, then notes the time.
int mc_gate_await(uint32_t number);
// Queues: note the time.
int mc_gate_end();
// Tells the supervisor that the batch is queued (`ready`), waits for everything on the device, side
// streams too, tells it (`done`), and gives the microseconds between the two notes.
int mc_gate_finish(uint32_t number, double* elapsed_us);

// ---- Trace --------------------------------------------------------------------------------------

// A fill of one word with this value tells a trace when the gate was opened: what began earlier did
// not wait for it.
constexpr uint32_t kMcOpenedMark = 0x6d636f70;

// Counts launches from now on, in whichever batch.  To be called before anything is loaded onto the
// device: what was loaded before has no owner.
int mc_trace_attach();
// A file whose kernels are the process's own, as the dynamic linker knows it.
void mc_trace_own(const char* file);

// Since mc_trace_attach: kernels and graphs, and those of them that are not known to be another's.
struct McLaunches {
  uint64_t all;
  uint64_t own;
};
McLaunches mc_trace_launches();

// Begun by mc_gate_close and mc_gate_await where the page asks for it.
int mc_trace_start();
// Where a trace began: waits for the device, looks on for a moment for work that begins late, and
// returns what ran as JSON: {"busy_us", "kernels": [{"name", "owner", "stream", "us", "early",
// "late", "grid", "block", "registers", "shared_bytes"}]}.  The owner is the file that holds the
// kernel; "memory", "several" and "unknown" are none.  Early ones began before the gate was opened.
// `busy_us` is how long anything ran.  Else "".  The text is valid until the next call; null when
// CUPTI failed.
const char* mc_trace_take();

// ---- Vendors' libraries -------------------------------------------------------------------------

// From now on no library but PyTorch's own has device code, of those that are loaded.  Who needs it
// all the same is not answered: in place of the answer, `channel` gets an error of the kind
// "library" (harness/worker/wire.py), and the process ends.  0, or an errno value.
int mc_vendors_remove(int channel);

}  // extern "C"

#endif  // MC_DEVICE_H_
