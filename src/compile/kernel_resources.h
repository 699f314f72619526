// SPDX-License-Identifier: Apache-2.0
//
// KernelResources: what a kernel of the candidate takes on the device, as the assembler says
// (nvcc --resource-usage), and thereby the list of the kernels that the candidate brings.
//
// The names are no proof of who wrote a kernel: a candidate may name its own as it likes.
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
  int registers = 0;   // A thread.
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
  int64_t stack_bytes = 0;   // The bytes of a thread's frame.
  int64_t shared_bytes = 0;  // Static: what a launch asks for comes on top.
  int64_t constant_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};

// A JSON array of objects with these members.  kInvalidInput for what is none.
std::string to_json(const std::vector<KernelResources>& kernels);
Result<std::vector<KernelResources>> kernels_from_json(std::string_view text);

// The entry functions in what `ptxas -v` printed, in its order; other lines are passed over.
std::vector<KernelResources> parse_kernel_resources(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_KERNEL_RESOURCES_H_
