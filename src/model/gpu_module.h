// SPDX-License-Identifier: Apache-2.0
//
// Our kernels on a GPU: compiled at run time by the compiler that PyTorch brings (NVRTC), launched
// on PyTorch's current stream.  A build needs no CUDA toolkit, and a machine without a GPU never
// comes here.  Errors are exceptions.
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

// The sizes that a kernel is compiled for; those that it does not need are 0.
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

// `arguments` point to the kernel's arguments, whose types are those of its parameters.
void launch_kernel(Kernel kernel, const Sizes& sizes, const Grid& grid, int64_t threads,
                   void** arguments);

template <typename... Arguments>
void launch(Kernel kernel, const Sizes& sizes, const Grid& grid, int64_t threads,
            Arguments... arguments) {
  void* pointers[] = {&arguments...};
  launch_kernel(kernel, sizes, grid, threads, pointers);
}

// Work on the current stream, recorded once and replayed.  What it reads and writes must outlive
// the graph, and it must not allocate.
class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  Graph(Graph&& other) noexcept;
  ~Graph();

  // Between these two, work on the current stream is recorded and not done.
  // REQUIRES: the current stream is not the default one.
  void begin();
  void end();
  void replay() const;

 private:
  void* executable_ = nullptr;
};

// Bytes of the current device's memory that are in use, by any process.
int64_t memory_used();

}  // namespace mc::model::gpu

#endif  // MC_MODEL_GPU_MODULE_H_
