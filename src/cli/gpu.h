// SPDX-License-Identifier: Apache-2.0
//
// The doctor's section "GPU": what the CUDA backend could use here, and what would add the rest.
//
// Nothing here is ever needed: without a GPU the CPU backend is used.  Looking and saying are
// apart, so that what is said can be tested on a machine without a GPU.
//
//   for (const Fact& fact : gpu_facts(look_for_gpu(pytorch))) facts.push_back(fact);
#ifndef MC_CLI_GPU_H_
#define MC_CLI_GPU_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor.h"
#include "compile/pytorch.h"
#include "execute/cuda_driver.h"

namespace mc::cli {

struct CudaVersion {
  int major = 0;
  int minor = 0;
};

// Of a PyTorch "2.11.0+cu130": 13.0.  Empty for one that is not built for CUDA.
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

// Whether these facts, among others, hold all that the cuda backend needs of the section "GPU".
bool can_use_gpu(const std::vector<Fact>& facts);

// In the section "GPU"; none is kMissing.
std::vector<Fact> gpu_facts(const GpuFindings& found);

}  // namespace mc::cli

#endif  // MC_CLI_GPU_H_
