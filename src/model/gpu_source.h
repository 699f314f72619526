// SPDX-License-Identifier: Apache-2.0
//
// The text of gpu_kernels.cu, which the build embeds into the program.
#ifndef MC_MODEL_GPU_SOURCE_H_
#define MC_MODEL_GPU_SOURCE_H_

namespace mc::model::gpu {

extern const char* const kGpuSource;

}  // namespace mc::model::gpu

#endif  // MC_MODEL_GPU_SOURCE_H_
