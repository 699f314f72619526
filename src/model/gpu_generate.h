// SPDX-License-Identifier: Apache-2.0
//
// The generate() of generate.h on a GPU, with the steps of gpu_decoder.h.
//
// The host reads the drawn tokens only every few steps.  Until then the device continues to draw
// tokens for a sequence that ended, and the host drops these surplus tokens.  So an answer has the
// same tokens as if the host had read after every step.
#ifndef MC_MODEL_GPU_GENERATE_H_
#define MC_MODEL_GPU_GENERATE_H_

#include <cstddef>
#include <functional>
#include <span>

#include "model/decoder.h"
#include "model/generate.h"

namespace mc::model {

// REQUIRES: GpuDecoder::fits(context) and at least one request.
GenerateCounts generate_on_gpu(const ForwardContext& context, std::span<const Request> requests,
                               const GenerateOptions& options,
                               const std::function<bool(size_t, const Answer&)>& done);

}  // namespace mc::model

#endif  // MC_MODEL_GPU_GENERATE_H_
