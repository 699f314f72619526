// SPDX-License-Identifier: Apache-2.0
//
// The doctor's section "GPU": the parts that the CUDA backend has on this machine, and how to add
// the missing ones.  Detection and description are separate functions, so that the description can
// be tested without a GPU.  Example:
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

// The CUDA version that a PyTorch is built for: 13.0 for "2.11.0+cu130".  Empty for a PyTorch
// without CUDA.
std::optional<CudaVersion> cuda_of(const std::string& pytorch_version);

struct Nvcc {
  std::filesystem::path path;
  std::string version;  // "13.0.88"; "" when nvcc does not print it.
};

struct GpuFindings {
  bool has_driver = false;     // True if its kernel module or device files exist.
  std::string driver_version;  // "580.159.04"; "" where the kernel module does not reveal it.
  Result<execute::CudaDriver> cuda = Error{ErrorCode::kNotFound, "not asked"};
  bool hides_devices = false;  // CUDA_VISIBLE_DEVICES is set.
  std::optional<compile::PyTorch> pytorch;
  std::optional<Nvcc> nvcc;
  std::filesystem::path sanitizer;  // Empty where not found; the same for `cupti`.
  std::filesystem::path cupti;
};

// Detects the parts.  Takes some seconds where GPUs have to wake up, at most the limit of
// cuda_driver.h.  `pytorch` is null where there is none.
GpuFindings look_for_gpu(const compile::PyTorch* pytorch);

// The facts of the section "GPU".
std::vector<Fact> gpu_facts(const GpuFindings& found);

}  // namespace mc::eval

#endif  // MC_EVAL_CUDA_FACTS_H_
