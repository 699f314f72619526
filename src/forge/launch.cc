// SPDX-License-Identifier: Apache-2.0
#include "forge/launch.h"

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "compile/cuda_runtime.h"
#include "compile/kernel_resources.h"
#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/check.h"
#include "core/file.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchitecture = "sm_90";

// "256" or "dim3(16, 16)".
int64_t threads_in(const std::string& block) {
  static const std::regex kNumber("\\s*(\\d+)\\s*");
  static const std::regex kDim3("\\s*dim3\\((\\d+)(?:,\\s*(\\d+))?(?:,\\s*(\\d+))?\\)\\s*");
  std::smatch found;
  if (std::regex_match(block, found, kNumber)) return std::stoll(found[1]);
  if (!std::regex_match(block, found, kDim3)) return 0;
  int64_t threads = 1;
  for (size_t i = 1; i < found.size(); ++i) threads *= found[i].matched ? std::stoll(found[i]) : 1;
  return threads;
}

// The second argument of a launch configuration: commas in parentheses do not separate.
std::string second_argument(std::string_view configuration) {
  int depth = 0;
  std::vector<std::string> parts(1);
  for (const char c : configuration) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts.size() > 1 ? parts[1] : "";
}

// The text without includes and without its host function, which begins with its return type.
std::string device_part(const std::string& cuda) {
  std::string text;
  for (size_t at = 0; at < cuda.size();) {
    const size_t end = std::min(cuda.find('\n', at), cuda.size());
    const std::string_view line = std::string_view(cuda).substr(at, end - at);
    if (line.starts_with("torch::") || line.starts_with("std::")) break;
    if (!line.starts_with("#include")) text.append(line).append("\n");
    at = end + 1;
  }
  return text;
}

}  // namespace

std::vector<int64_t> threads_of_launches(std::string_view cuda) {
  std::vector<int64_t> all;
  for (size_t at = 0; (at = cuda.find("<<<", at)) != std::string_view::npos; at += 3) {
    const size_t end = cuda.find(">>>", at);
    if (end == std::string_view::npos) break;
    all.push_back(threads_in(second_argument(cuda.substr(at + 3, end - at - 3))));
  }
  return all;
}

std::vector<std::vector<Resources>> resources_in(std::string_view printed, size_t num_units) {
  std::vector<std::vector<Resources>> all(num_units);
  for (const compile::KernelResources& one : compile::parse_kernel_resources(printed)) {
    static const std::regex kName("s(\\d+)::(\\w+).*");
    std::smatch found;
    if (!std::regex_match(one.name, found, kName)) continue;
    const size_t unit = std::stoul(found[1]);
    if (unit >= num_units) continue;
    all[unit].push_back(
        {found[2], one.registers, one.shared_bytes, one.spill_store_bytes, one.spill_load_bytes});
  }
  for (auto& kernels : all) std::ranges::sort(kernels, {}, &Resources::kernel);
  return all;
}

Result<std::vector<std::vector<Resources>>> compile_for_resources(
    const std::filesystem::path& nvcc, const std::vector<std::string>& cudas) {
  MC_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("mc-ptxas"), "profiles");
  std::string unit;
  for (size_t i = 0; i < cudas.size(); ++i) {
    unit += fmt::format("namespace s{} {{\n{}}}\n", i, device_part(cudas[i]));
  }
  const auto source = folder.path() / "unit.cu";
  MC_TRY_VOID(write_file_atomically(source, unit), "profiles");
  // The report of ptxas comes on standard error.
  const std::string command = fmt::format("'{}' -arch={} -cubin -Xptxas -v -o /dev/null '{}' 2>&1",
                                          nvcc.string(), kArchitecture, source.string());
  MC_TRY(const std::string printed, compile::run_tool({"sh", "-c", command}), "profiles");
  return resources_in(printed, cudas.size());
}

Result<Nvcc> find_nvcc_of_profiles() {
  MC_TRY(const compile::PyTorch pytorch, compile::find_pytorch(compile::default_python()),
         "profiles");
  MC_TRY(const fs::path path, compile::find_nvcc(pytorch), "profiles");
  MC_TRY(const std::string printed, compile::run_tool({path.string(), "--version"}), "profiles");
  const std::string release = compile::release_of_nvcc(printed);
  if (release.empty()) return Error{ErrorCode::kUnavailable, "nvcc does not print its release"};
  return Nvcc{path, release};
}

}  // namespace mc::forge
