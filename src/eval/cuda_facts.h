// SPDX-License-Identifier: Apache-2.0
//
// The doctor's section "GPU": what the CUDA backend could use here, and what would add the rest.
// Looking and saying are apart, so that what is said can be tested on a machine without a GPU.
// Example:
//   for (const Fact& fact : gpu_facts(look_for_gpu(pytorch))) facts.push_back(fact);
#ifndef MC_EVAL_CUDA_FACTS_H_
#define MC_EVAL_CUDA_FACTS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compile/pytorch.h"
#include "core/fact.h"
#include "execute/cuda_driver.h"

namespace mc::eval {

struct CudaVersion {
  int major = 0;
  int minor = 0;
};

// The version of CUDA for a PyTorch "2.11.0+cu130": 13.0.  Empty for one that is not built for
// CUDA.
std::optional<CudaVersion> cuda_of(const std::string& pytorch_version);

struct Nvcc {
  std::filesystem::path path;
  std::string version;  // "13.0.88"; "" when it does not tell.
};

struct GpuFindings {
  bool has_driver = false;     // Its kernel module, or its device files.
  std::string driver_version;  // "580.159.04"; "" where the module does not tell.
  Result<execute::CudaDriver> cuda = Error{ErrorCode::kNotFound, "not asked"};
  bool hides_devices = false;  // CUDA_VISIBLE_DEVICES is set.
  std::optional<compile::PyTorch> pytorch;
  std::optional<Nvcc> nvcc;
  std::filesystem::path sanitizer;  // Empty: not found; so with the next.
  std::filesystem::path cupti;
};

// Takes some seconds where GPUs have to wake up, at most the limit of cuda_driver.h.  Null: no
// PyTorch.
GpuFindings look_for_gpu(const compile::PyTorch* pytorch);

// In the section "GPU".
std::vector<Fact> gpu_facts(const GpuFindings& found);

}  // namespace mc::eval

#endif  // MC_EVAL_CUDA_FACTS_H_
