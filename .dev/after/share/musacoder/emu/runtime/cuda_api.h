// SPDX-License-Identifier: Apache-2.0
// The shared part of the files of CUDA's runtime interface: how a call ends, and streams, events
// and graphs.
//
// All work is done when the call that submits it returns, so a stream has no queue.  A stream that
// is captured is the exception: its work is recorded in a graph, and runs when the graph is
// launched.  A capture spreads to the streams that wait for an event of a captured stream.
#ifndef MC_EMU_RUNTIME_CUDA_API_H_
#define MC_EMU_RUNTIME_CUDA_API_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "mc_emu/errors.h"

// The order of the work is the order in which it was captured or added, which satisfies every
// dependency that a program can state.
struct McEmuGraph {
  std::vector<std::function<void()>> work;
};

struct McEmuGraphExec {
  std::vector<std::function<void()>> work;
};

struct McEmuStream {
  unsigned flags = 0;
  int priority = 0;
  uint64_t id = 0;
  McEmuGraph* capture = nullptr;  // The graph that records this stream's work.
  bool owns_capture = false;      // The capture began here.
};

struct McEmuEvent {
  uint64_t recorded_at = 0;
  McEmuGraph* capture = nullptr;
};

namespace mc::emu {

// Ends a call of CUDA's runtime: an error that a kernel left behind comes before the call's own.
cudaError_t finish(cudaError_t error);

// The object behind a handle; null for the default streams, which have none.
McEmuStream* stream_behind(McEmuStream* handle);

// The graph that records what is submitted to the stream now, or null.
McEmuGraph* capture_of(McEmuStream* handle);

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_CUDA_API_H_
