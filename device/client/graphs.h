// SPDX-License-Identifier: Apache-2.0
//
// Graphs: streams that are being captured, and graphs with work of the host in them.
//
// The device process does not reach the host's memory, so a checked program's graph (src/check) is
// cut at each copy from or to the host and at each function of the host.  The parts between them
// are graphs of the device, and the client does the host's work when the graph is launched.  Where
// a graph has several streams the device refuses such a copy by name, as it does for candidates.
#ifndef MC_DEVICE_CLIENT_GRAPHS_H_
#define MC_DEVICE_CLIENT_GRAPHS_H_

#include <driver_types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace mc::device {

class Graphs {
 public:
  // Work of the host's, in the order of the stream.
  using Work = std::function<cudaError_t(cudaStream_t)>;

  static Graphs& get();

  void begin_capture(cudaStream_t stream, uint32_t mode);
  cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* graph);
  bool is_capturing();
  // Does the work now, or where the stream is being captured with each launch of its graph.
  cudaError_t run(cudaStream_t stream, const Work& work);
  // The stream waits for an event: it may become a part of a graph that is being captured.
  void note_wait(cudaStream_t stream);

  cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph);
  cudaError_t launch(cudaGraphExec_t exec, cudaStream_t stream);
  void destroy(cudaGraph_t graph);
  void destroy(cudaGraphExec_t exec);

 private:
  // A graph of the device, and the host's work that runs after it.
  struct Part {
    uint32_t handle;
    Work work;
  };
  using Parts = std::vector<Part>;
  struct Recording {
    uint32_t mode = 0;
    bool is_forked = false;
    Parts parts;
  };

  std::mutex mutex_;
  // Guarded by mutex_.  The last part of a graph has the graph's own handle, and is not here.
  std::map<uint32_t, Recording> recordings_;
  std::map<uint32_t, Parts> graphs_;
  std::map<uint32_t, Parts> execs_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_GRAPHS_H_
