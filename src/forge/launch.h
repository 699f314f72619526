// SPDX-License-Identifier: Apache-2.0
//
// Launches: what a kernel's text and its compilation say of how it runs: threads of a block,
// registers, shared memory.  How many blocks of it a multiprocessor holds: timing/occupancy.h.
#ifndef MC_FORGE_LAUNCH_H_
#define MC_FORGE_LAUNCH_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::forge {

// The threads of a block of each launch in a CUDA text, in order; 0 where it is no number.
std::vector<int64_t> threads_of_launches(std::string_view cuda);

// The report of ptxas on one kernel.
struct Resources {
  std::string kernel;
  int64_t registers = 0, shared = 0, spill_stores = 0, spill_loads = 0;
};

// Compiles the kernels of each text for sm_90 as one unit, by nvcc; a list for each text, its
// kernels in the order of their names.  kUnavailable where nvcc fails.
Result<std::vector<std::vector<Resources>>> compile_for_resources(
    const std::filesystem::path& nvcc, const std::vector<std::string>& cudas);

// The compiler of profiles and its release, "13.0".  kUnavailable without one.
struct Nvcc {
  std::filesystem::path path;
  std::string release;
};
Result<Nvcc> find_nvcc_of_profiles();

// Reads what `nvcc -Xptxas -v` printed of units whose kernels are in namespaces s0, s1, ….
std::vector<std::vector<Resources>> resources_in(std::string_view printed, size_t num_units);

}  // namespace mc::forge

#endif  // MC_FORGE_LAUNCH_H_
