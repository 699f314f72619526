// SPDX-License-Identifier: Apache-2.0
#include "forge/launch.h"

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "compile/tool.h"
#include "core/file.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchitecture = "sm_90";
constexpr int64_t kRegistersUnit = 256;  // Registers are given to a warp in such units.
constexpr int64_t kSharedUnit = 128;

// The nvcc in $CUDA_HOME, on PATH, or where the toolkit installs it; "" where there is none.
fs::path nvcc_path() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  std::istringstream path(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda/bin");
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "nvcc", ignored)) return folder / "nvcc";
  }
  return {};
}

int64_t rounded_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

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

Occupancy occupancy_of(int64_t threads, int64_t registers, int64_t shared_bytes) {
  const int64_t warps = (threads + 31) / 32;
  const int64_t registers_of_warp =
      rounded_up(std::max<int64_t>(registers, 1) * 32, kRegistersUnit);
  const int64_t shared = rounded_up(shared_bytes + kSharedReserved, kSharedUnit);
  const std::pair<const char*, int64_t> limits[] = {
      {"warps", kWarpsMax / warps},
      {"blocks", kBlocksMax},
      {"registers", kRegisters / registers_of_warp / warps},
      {"shared memory", kSharedBytes / shared}};
  const auto* least = std::ranges::min_element(
      limits, [](const auto& one, const auto& other) { return one.second < other.second; });
  return {least->second, least->second * warps * 100 / kWarpsMax, least->first};
}

std::vector<std::vector<Resources>> resources_in(std::string_view printed, size_t num_units) {
  std::vector<std::vector<Resources>> all(num_units);
  const std::string text(printed);
  Resources* now = nullptr;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    std::smatch found;
    if (std::regex_search(line, found, std::regex("entry function '_ZN\\d+s(\\d+)E?(\\w*)'"))) {
      // The name is "<size of sN>sN<size><kernel>E…": the unit's digits end where the size begins.
      static const std::regex kName("_ZN(\\d+)(\\w+)'");
      std::regex_search(line, found, kName);
      const auto size = static_cast<size_t>(std::stoul(found[1]));
      const std::string rest = found[2];
      const size_t unit = std::stoul(rest.substr(1, size - 1));
      size_t digits = size;
      while (digits < rest.size() && std::isdigit(static_cast<unsigned char>(rest[digits])) != 0)
        ++digits;
      const size_t length = std::stoul(rest.substr(size, digits - size));
      now = nullptr;
      if (unit < num_units) now = &all[unit].emplace_back(Resources{rest.substr(digits, length)});
    } else if (now != nullptr) {
      const auto number = [&](const char* pattern, int64_t& value) {
        if (std::regex_search(line, found, std::regex(pattern))) value = std::stoll(found[1]);
      };
      number("(\\d+) bytes spill stores", now->spill_stores);
      number("(\\d+) bytes spill loads", now->spill_loads);
      number("Used (\\d+) registers", now->registers);
      number("(\\d+) bytes smem", now->shared);
    }
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
  const fs::path path = nvcc_path();
  if (path.empty()) {
    return Error{ErrorCode::kUnavailable, "profiles need nvcc: set CUDA_HOME, or leave them out"};
  }
  MC_TRY(const std::string printed, compile::run_tool({path.string(), "--version"}), "profiles");
  static const std::regex kRelease("release ([0-9.]+)");
  std::smatch found;
  if (std::regex_search(printed, found, kRelease)) return Nvcc{path, found[1].str()};
  return Error{ErrorCode::kUnavailable, "nvcc does not print its release"};
}

}  // namespace mc::forge
