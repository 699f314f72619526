// SPDX-License-Identifier: Apache-2.0
//
// KernelResources: the resources of a candidate's kernel on the device, as the assembler reports
// them (nvcc --resource-usage), and so also the list of the candidate's kernels.
//
// The names do not prove the origin of a kernel: a candidate can choose any name.
#ifndef MC_COMPILE_KERNEL_RESOURCES_H_
#define MC_COMPILE_KERNEL_RESOURCES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::compile {

inline constexpr size_t kKernelsMax = 1024;

struct KernelResources {
  std::string kernel;  // Mangled, as the driver knows it.
  std::string name;    // Demangled (core/demangle.h).
  int registers = 0;   // For each thread.
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
  int64_t stack_bytes = 0;   // The bytes of a thread's frame.
  int64_t shared_bytes = 0;  // Static: a launch may request more.
  int64_t constant_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};

// A JSON array of objects with these members.  kInvalidInput for any other text.
std::string to_json(const std::vector<KernelResources>& kernels);
Result<std::vector<KernelResources>> kernels_from_json(std::string_view text);

// The entry functions in the output of `ptxas -v`, in order; other lines are ignored.
std::vector<KernelResources> parse_kernel_resources(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_KERNEL_RESOURCES_H_
