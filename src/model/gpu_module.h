// SPDX-License-Identifier: Apache-2.0
//
// Our GPU kernels: compiled at run time by NVRTC, which PyTorch contains, and launched on PyTorch's
// current stream.  A build needs no CUDA toolkit, and a machine without a GPU never calls this
// code.  Errors are exceptions.
#ifndef MC_MODEL_GPU_MODULE_H_
#define MC_MODEL_GPU_MODULE_H_

#include <compare>
#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

namespace mc::model::gpu {

// The kernels of gpu_kernels.cu.
enum class Kernel {
  kAddColumnSums,
  kAddRmsNorm,
  kRmsNormBackward,
  kMakeHeads,
  kMakeHeadsBackward,
  kAttendCache,
  kJoinParts,
  kFillCache,
  kSwiglu,
  kSwigluBackward,
  kAddRows,
  kGatherRows,
  kLogSoftmaxRow,
  kSumSquares,
  kAdamW,
  kChoose,
  kAdvance,
};

// The sizes for which a kernel is compiled; sizes that it does not use are 0.
struct Sizes {
  int64_t width = 0;
  int64_t head_dim = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  auto operator<=>(const Sizes&) const = default;
};

struct Grid {
  int64_t x = 1;
  int64_t y = 1;
  int64_t z = 1;
};

// Launches a kernel.  `arguments` are pointers to the kernel's arguments, in the types of its
// parameters.
void launch_kernel(Kernel kernel, const Sizes& sizes, const Grid& grid, int64_t threads,
                   void** arguments);

template <typename... Arguments>
void launch(Kernel kernel, const Sizes& sizes, const Grid& grid, int64_t threads,
            Arguments... arguments) {
  void* pointers[] = {&arguments...};
  launch_kernel(kernel, sizes, grid, threads, pointers);
}

// A CUDA graph: work on the current stream, recorded once and replayed.  The memory that it reads
// and writes must outlive the graph, and the recorded work must not allocate.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&& other) noexcept;
  ~Graph();

  // Between begin() and end(), work on the current stream is recorded and not executed. REQUIRES:
  // the current stream is not the default one.
  void begin();
  void end();
  void replay() const;

 private:
  void* executable_ = nullptr;
};

// The bytes of the current device's memory that any process uses.
int64_t memory_used();

}  // namespace mc::model::gpu

#endif  // MC_MODEL_GPU_MODULE_H_
