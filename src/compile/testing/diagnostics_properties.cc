// SPDX-License-Identifier: Apache-2.0
#include "compile/testing/diagnostics_properties.h"

#include "compile/diagnostics.h"
#include "compile/kernel_resources.h"
#include "core/check.h"
#include "core/demangle.h"

namespace mc::compile {
namespace {

constexpr size_t kMessageBytesMax = 1024;

void check_diagnostics(std::string_view output) {
  Extension extension;
  extension.cuda_sources = {"one\ntwo\nthree\n"};
  const auto diagnostics = parse_diagnostics(output, LocationMapper("one\ntwo\n", {extension}));
  MC_CHECK(diagnostics.size() <= kDiagnosticsMax);
  bool errors = true;
  for (const task::Diagnostic& entry : diagnostics) {
    MC_CHECK(errors || entry.severity != "error");
    errors = entry.severity == "error";
    MC_CHECK(entry.message.size() <= kMessageBytesMax);
    MC_CHECK(entry.location.line >= 0 && entry.location.column >= 0);
  }
}

void check_kernels(std::string_view output) {
  const auto kernels = parse_kernel_resources(output);
  MC_CHECK(kernels.size() <= kKernelsMax);
  for (const KernelResources& kernel : kernels) {
    MC_CHECK(kernel.name.size() <= kDemangledBytesMax);
    MC_CHECK(kernel.shared_bytes >= 0 && kernel.constant_bytes >= 0);
  }
}

}  // namespace

void check_nvcc_output(std::string_view output) {
  check_diagnostics(output);
  check_kernels(output);
}

}  // namespace mc::compile
