// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compile/musa_runtime.h"
#include "core/file.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "https://github.com/MooreThreads/torch_musa";

Fact fact_of(const char* name, bool is_present, std::string detail, std::string remedy) {
  return {"MUSA", name, is_present ? State::kPresent : State::kMissing, std::move(detail),
          is_present ? "" : std::move(remedy)};
}

Fact driver_fact(const MusaFindings& found) {
  const char* remedy = "the driver of Moore Threads; in a container: MTHREADS_VISIBLE_DEVICES=all";
  if (!found.driver) return fact_of("driver library", false, found.driver.error().message, remedy);
  std::vector<std::string> names;
  for (const execute::CudaDevice& device : found.driver->devices) names.push_back(device.name);
  return fact_of("driver library", true, fmt::format("{}", fmt::join(names, ", ")), remedy);
}

}  // namespace

std::vector<std::string> musa_nodes() {
  std::vector<std::string> nodes = device_nodes("/dev", "mtgpu");
  if (nodes.empty()) return nodes;
  std::ranges::move(device_nodes("/dev/dri", "renderD"), std::back_inserter(nodes));
  return nodes;
}

MusaFindings look_for_musa(const compile::PyTorch* pytorch) {
  MusaFindings found;
  std::error_code failure;
  found.mcc = compile::musa_toolkit().mcc;
  found.has_mcc = fs::exists(found.mcc, failure);
  found.nodes = musa_nodes();
  found.driver = execute::query_cuda_driver(kMusaDriver, execute::kCudaDriverTimeMax, "mu");
  if (pytorch == nullptr) return found;
  found.python = pytorch->python.string();
  found.has_torch_musa = !pytorch->torch_musa.empty();
  const auto version = read_file(pytorch->root / "version.py", 1 << 16);
  found.is_patched_pytorch = version && version->find("musa") != std::string::npos;
  return found;
}

std::vector<Fact> musa_facts(const MusaFindings& found) {
  const std::string nodes =
      found.nodes.empty() ? "no /dev/mtgpu*" : fmt::format("{}", fmt::join(found.nodes, " "));
  return {
      fact_of("mcc", found.has_mcc, found.has_mcc ? found.mcc.string() : "no " + found.mcc.string(),
              "install the MUSA SDK and set MUSA_HOME, or PYTORCH_MCC"),
      driver_fact(found),
      fact_of("device node", !found.nodes.empty(), nodes,
              "load the kernel module mtgpu; in a container: --device /dev/mtgpu.0"),
      fact_of("torch_musa", found.has_torch_musa,
              (found.has_torch_musa ? "in the Python of " : "not in the Python of ") + found.python,
              fmt::format("install it for this Python: {}", kPackage)),
      fact_of("patched PyTorch", found.is_patched_pytorch,
              found.is_patched_pytorch ? "built with MUSA's patches"
                                       : "PyTorch is built without MUSA's patches",
              fmt::format("the PyTorch that comes with torch_musa: {}", kPackage)),
  };
}

}  // namespace mc::eval
