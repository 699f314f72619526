// SPDX-License-Identifier: Apache-2.0
//
// generate() (generate.h) on a GPU, with the steps of gpu_decoder.h.
//
// The host looks at the drawn tokens only every few steps: a sequence that ended is drawn further
// until then, and the surplus tokens are dropped.  So an answer has the same tokens as if the host
// looked after every step.
#ifndef MC_MODEL_GPU_GENERATE_H_
#define MC_MODEL_GPU_GENERATE_H_

#include <cstddef>
#include <functional>
#include <span>

#include "model/decoder.h"
#include "model/generate.h"

namespace mc::model {

// REQUIRES: GpuDecoder::fits(passage), and requests are not empty.
GenerateCounts generate_on_gpu(const ForwardContext& passage, std::span<const Request> requests,
                               const GenerateOptions& options,
                               const std::function<bool(size_t, const Answer&)>& done);

}  // namespace mc::model

#endif  // MC_MODEL_GPU_GENERATE_H_
