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

#include <nlohmann/json_fwd.hpp>

namespace mc::compile {

inline constexpr size_t kKernelsMax = 1024;

struct KernelResources {
  std::string kernel;  // Mangled, as the driver knows it.
  std::string name;    // Demangled (core/demangle.h).
  int registers = 0;   // A thread.
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;
  int64_t stack_bytes = 0;   // Of a thread's frame.
  int64_t shared_bytes = 0;  // Static: what a launch asks for comes on top.
  int64_t constant_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};

// For nlohmann::json; what lacks a member throws its exception.
void to_json(nlohmann::json& json, const KernelResources& kernel);
void from_json(const nlohmann::json& json, KernelResources& kernel);

// The entry functions in what `ptxas -v` printed, in its order; other lines are passed over.
std::vector<KernelResources> parse_kernel_resources(std::string_view output);

}  // namespace mc::compile

#endif  // MC_COMPILE_KERNEL_RESOURCES_H_
