// SPDX-License-Identifier: Apache-2.0
#include "check/program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "compile/build.h"
#include "compile/cuda_libraries.h"
#include "compile/pytorch.h"
#include "core/check.h"
#include "core/file.h"
#include "execute/decode.h"
#include "sandbox/run.h"

namespace mc::check {
namespace {

namespace fs = std::filesystem;

constexpr const char* kArchitecture = "90";  // The device's (device/ptx_driver/description.h).
constexpr const char* kUnsupported = "unsupported";
constexpr size_t kProgramBytesMax = size_t{2} << 30;
constexpr compile::CompileLimits kCompileLimits{.cpu_s = 300, .memory_bytes = int64_t{8} << 30};

std::vector<std::string> environment_with(const fs::path& libraries, const Device& device) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("LD_") && !text.starts_with("MC_CHECK_")) environment.emplace_back(text);
  }
  environment.push_back("LD_LIBRARY_PATH=" + libraries.string());
  environment.push_back("MC_DEVICE_CHANNEL=" + std::to_string(device.channel()));
  if (device.memory() >= 0) {
    environment.push_back(
        fmt::format("MC_DEVICE_MEMORY={}:{}", device.memory(), device.memory_address()));
  }
  return environment;
}

sandbox::Command command_of(const Tools& tools, const fs::path& executable,
                            const RunOptions& options, const Device& device) {
  std::error_code failure;
  sandbox::Command command;
  command.argv = {executable.string()};
  command.argv.insert(command.argv.end(), options.arguments.begin(), options.arguments.end());
  command.directory = fs::current_path(failure).string();
  command.environment = environment_with(tools.client.parent_path(), device);
  command.descriptors = {device.channel()};
  if (device.memory() >= 0) command.descriptors.push_back(device.memory());
  command.on_output = options.on_output;
  sandbox::Profile& profile = command.profile;
  profile.writable = {command.directory};
  profile.visible = {executable.parent_path().string(), tools.client.parent_path().string()};
  profile.limits.memory_bytes = static_cast<uint64_t>(options.memory_bytes);
  profile.limits.reserved_bytes = kReservedBytes;
  profile.limits.cpu = std::chrono::seconds(static_cast<int64_t>(std::ceil(options.timeout_s)) + 1);
  profile.limits.wall = std::chrono::milliseconds(std::llround(options.timeout_s * 1000));
  profile = sandbox::lenient(profile);
  return command;
}

// Memory that is a file is slower to touch, so only programs that name these functions have it.
Result<bool> uses_managed_memory(const fs::path& executable) {
  MC_TRY(const std::string bytes, read_file(executable, kProgramBytesMax), "the program");
  return bytes.find("cudaMallocManaged") != std::string::npos ||
         bytes.find("cudaHostGetDevicePointer") != std::string::npos;
}

// Files below this process's folder are named from there, as compilers do.
std::string shown(std::string_view file) {
  std::error_code failure;
  const std::string near = fs::proximate(file, failure).string();
  return failure || near.starts_with("..") ? std::string(file) : near;
}

// Things that the device lacks are told apart.
void take_findings(const std::string& report, Checked& checked) {
  const auto locate = [](std::string_view file, uint64_t line) {
    return task::SourceLocation{shown(file), static_cast<int>(line), 0, ""};
  };
  for (task::KernelFinding& finding : execute::decode_findings(report, locate)) {
    if (finding.kind == kUnsupported) {
      checked.unsupported.push_back(finding.kernel + ": " + finding.detail);
    } else {
      checked.findings.push_back(std::move(finding));
    }
  }
}

}  // namespace

Result<Tools> find_tools(const Layout& layout, const compile::Progress& progress) {
  Tools tools;
  tools.executor = layout.library(kExecutor);
  std::error_code failure;
  if (!fs::exists(tools.executor, failure)) {
    return Error{ErrorCode::kUnavailable,
                 "this musacoder was built without the device that executes PTX"};
  }
  MC_TRY(const compile::PyTorch pytorch, compile::find_pytorch(compile::default_python()),
         "set-up");
  MC_TRY(tools.runtime, compile::find_cuda_runtime(pytorch, kArchitecture, compile::CodeKind::kPtx),
         "set-up");
  MC_TRY(const compile::PtxLibraries libraries,
         compile::prepare_ptx_libraries(pytorch, tools.runtime, layout, progress), "set-up");
  tools.client = libraries.client;
  return tools;
}

Result<Compiled> compile_program(const Tools& tools, const std::vector<fs::path>& sources,
                                 const std::vector<std::string>& nvcc_flags,
                                 const fs::path& executable) {
  MC_CHECK(!sources.empty());
  const compile::CudaRuntime& runtime = tools.runtime;
  std::vector<std::string> argv = {runtime.nvcc.string()};
  argv.insert(argv.end(), runtime.code_flags.begin(), runtime.code_flags.end());
  std::error_code failure;
  for (const std::string& flag : nvcc_flags) {  // The compiler runs in another folder.
    const bool is_folder = flag.starts_with("-I") && flag.size() > 2;
    argv.push_back(is_folder ? "-I" + fs::absolute(flag.substr(2), failure).string() : flag);
  }
  std::vector<std::string> visible = runtime.visible;
  visible.push_back(fs::current_path(failure).string());
  for (const fs::path& source : sources) {
    const fs::path path = fs::absolute(source, failure);
    argv.push_back(path.string());
    visible.push_back(path.parent_path().string());
  }
  for (const std::string& flag : nvcc_flags) {
    if (flag.starts_with("-I")) visible.push_back(fs::absolute(flag.substr(2), failure).string());
  }
  const std::string folder = tools.client.parent_path().string();
  visible.push_back(folder);
  argv.insert(argv.end(), {"-cudart=none", "-L" + folder, "-l:" + tools.client.filename().string(),
                           "-o", executable.string()});
  std::atomic<int64_t> cpu_us = 0;
  const compile::Build build{executable.parent_path(), visible, kCompileLimits, cpu_us};
  MC_TRY(compile::BuildRun run, compile::run_in_sandbox(build, argv), "nvcc");
  if (std::holds_alternative<task::TimedOut>(run)) return Compiled{false, "nvcc: time limit\n"};
  if (std::holds_alternative<task::OutOfMemory>(run))
    return Compiled{false, "nvcc: memory limit\n"};
  auto& done = std::get<compile::ToolRun>(run);
  return Compiled{done.succeeded, done.err + done.out};
}

Result<Checked> check_program(const Tools& tools, const fs::path& executable,
                              const RunOptions& options) {
  MC_TRY(const bool shares_memory, uses_managed_memory(executable), "check");
  MC_TRY(Device device,
         Device::start({tools.executor, executable, options.seed, options.timeout_s,
                        options.memory_bytes, options.counts, shares_memory}),
         "check");
  sandbox::Command command = command_of(tools, executable, options, device);
  command.goes_on = [&device] { return device.is_alive(); };
  MC_TRY(const sandbox::Completed done, sandbox::run(command), "run the program");
  Checked checked{done.ending, {}, {}, 0, ""};
  auto report = device.finish();
  if (!report) {
    checked.unsupported.push_back(report.error().message);
    return checked;
  }
  take_findings(report->findings, checked);
  if (!report->unsupported.empty()) checked.unsupported.push_back(report->unsupported);
  checked.launches = report->launches;
  checked.profile = report->profile;
  return checked;
}

}  // namespace mc::check
