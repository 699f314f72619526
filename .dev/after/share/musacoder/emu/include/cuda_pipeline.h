// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUDA_PIPELINE_H_
#define MC_EMU_CUDA_PIPELINE_H_

// CUDA's <cuda_pipeline.h>: the primitives, and nvcuda::experimental::pipeline over them.

#include "cuda_pipeline_primitives.h"

namespace nvcuda::experimental {

class pipeline {
 public:
  size_t commit() {
    mc_emu_copy_commit();
    return committed_++;
  }
  void commit_and_wait() { wait(commit()); }
  void wait(size_t stage) {
    if (stage < committed_) mc_emu_copy_wait(static_cast<uint32_t>(committed_ - stage - 1));
  }
  template <unsigned kGroups>
  void wait_prior() {
    mc_emu_copy_wait(kGroups);
  }

 private:
  size_t committed_ = 0;
};

template <class T>
inline void memcpy_async(T& destination, const T& source, pipeline&) {
  mc_emu_copy_begin(&destination, &source, sizeof(T), 0);
}

}  // namespace nvcuda::experimental

#endif  // MC_EMU_CUDA_PIPELINE_H_
