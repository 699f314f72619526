// SPDX-License-Identifier: Apache-2.0
#include "check/program.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

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
using Json = nlohmann::json;

// The architecture of the device in software (device/ptx_driver/description.h).
constexpr const char* kArchitecture = "90";
constexpr const char* kUnsupported = "unsupported";
constexpr const char* kUnwrittenCopy = "uninitialised_copy";
constexpr const char* kAddressTool = "/usr/bin/addr2line";  // Installed together with the linker.
// The byte that fills new memory in each of three runs.  It is the same in the first two, so that
// a word that differs between them is not blamed on new memory.
constexpr int kFreshBytes[] = {0x00, 0x00, 0x3F};
constexpr size_t kProgramBytesMax = size_t{2} << 30;
constexpr compile::CompileLimits kCompileLimits{.cpu_s = 300, .memory_bytes = int64_t{8} << 30};

std::vector<std::string> environment_with(const std::string& libraries, const Device& device) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("LD_") && !text.starts_with("MC_CHECK_")) environment.emplace_back(text);
  }
  environment.push_back("LD_LIBRARY_PATH=" + libraries);
  environment.push_back("MC_DEVICE_CHANNEL=" + std::to_string(device.channel()));
  if (device.memory() >= 0) {
    environment.push_back(
        fmt::format("MC_DEVICE_MEMORY={}:{}", device.memory(), device.memory_address()));
  }
  return environment;
}

// The command that runs the program; `driver` is the folder of link_driver().
sandbox::Command command_of(const Tools& tools, const fs::path& driver, const fs::path& executable,
                            const RunOptions& options, const Device& device) {
  std::error_code failure;
  sandbox::Command command;
  command.argv = {executable.string()};
  command.argv.insert(command.argv.end(), options.arguments.begin(), options.arguments.end());
  command.directory = fs::current_path(failure).string();
  const fs::path client = tools.client.parent_path();
  command.environment = environment_with(client.string() + ":" + driver.string(), device);
  command.descriptors = {device.channel()};
  if (device.memory() >= 0) command.descriptors.push_back(device.memory());
  command.on_output = options.on_output;
  sandbox::Profile& profile = command.profile;
  profile.writable = {command.directory};
  profile.visible = {executable.parent_path().string(), client.string(), driver.string()};
  profile.limits.memory_bytes = static_cast<uint64_t>(options.memory_bytes);
  profile.limits.reserved_bytes = kReservedBytes;
  profile.limits.cpu = std::chrono::seconds(static_cast<int64_t>(std::ceil(options.timeout_s)) + 1);
  profile.limits.wall = std::chrono::milliseconds(std::llround(options.timeout_s * 1000));
  profile = sandbox::lenient(profile);
  return command;
}

// Memory in a file is slower to touch, so only programs that contain the names of these functions
// have it.
Result<bool> uses_managed_memory(const fs::path& executable) {
  MC_TRY(const std::string bytes, read_file(executable, kProgramBytesMax), "the program");
  return bytes.find("cudaMallocManaged") != std::string::npos ||
         bytes.find("cudaHostGetDevicePointer") != std::string::npos ||
         bytes.find("__cudaRegisterManagedVar") != std::string::npos;
}

// The file's path as compilers print it: relative to the working directory for files below it.
std::string shown(std::string_view file) {
  std::error_code failure;
  const std::string near = fs::proximate(file, failure).string();
  return failure || near.starts_with("..") ? std::string(file) : near;
}

// The lines of the program's code at these addresses, as "FILE:LINE"; "" where none is known.
std::map<uint64_t, std::string> lines_at(const fs::path& executable,
                                         const std::set<uint64_t>& places) {
  std::map<uint64_t, std::string> lines;
  sandbox::Command command;
  command.argv = {kAddressTool, "-e", executable.string()};
  for (const uint64_t place : places) command.argv.push_back(fmt::format("{:#x}", place));
  command.profile.visible = {executable.parent_path().string()};
  const auto done = sandbox::run(command);
  if (!done || !sandbox::succeeded(*done)) return lines;
  std::istringstream text(done->out.text());
  for (const uint64_t place : places) {
    std::string line;
    std::getline(text, line);
    line.resize(std::min(line.find(" (discriminator"), line.size()));
    if (!line.starts_with("?")) lines[place] = line;
  }
  return lines;
}

// The report, with lines of host code in place of addresses.
std::string located(const std::string& report, const fs::path& executable) {
  std::vector<Json> findings;
  std::set<uint64_t> places;
  std::istringstream text(report);
  for (std::string line; std::getline(text, line);) {
    Json finding = Json::parse(line, nullptr, false);
    if (!finding.is_object()) continue;
    const uint64_t place = finding.value("place", uint64_t{0});
    if (place != 0) places.insert(place);
    findings.push_back(std::move(finding));
  }
  if (places.empty()) return report;
  const std::map<uint64_t, std::string> lines = lines_at(executable, places);
  std::string whole;
  for (Json& finding : findings) {
    const auto found = lines.find(finding.value("place", uint64_t{0}));
    const size_t colon = found == lines.end() ? std::string::npos : found->second.rfind(':');
    if (colon != std::string::npos) {
      finding["file"] = found->second.substr(0, colon);
      finding["line"] = std::strtol(found->second.c_str() + colon + 1, nullptr, 10);
    }
    whole += finding.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return whole;
}

// Adds the findings; features that the device lacks go to a separate list.
void take_findings(const std::string& report, Checked& checked) {
  const auto locate = [](std::string_view file, uint64_t line, std::string_view) {
    return task::SourceLocation{shown(file), static_cast<int>(line), 0, ""};
  };
  for (task::KernelFinding& finding : execute::decode_findings(report, locate)) {
    if (finding.kind == kUnsupported) {
      checked.unsupported.push_back(
          finding.kernel.empty() ? finding.detail : finding.kernel + ": " + finding.detail);
    } else {
      checked.findings.push_back(std::move(finding));
    }
  }
}

bool is_relocatable(const std::string& flag) {
  return std::ranges::find(kRelocatable, flag) != std::end(kRelocatable);
}

// Programs that call the driver itself find the client as libcuda, too.
Status link_driver(const Tools& tools, const fs::path& folder) {
  std::error_code failure;
  fs::create_symlink(tools.client, folder / "libcuda.so.1", failure);
  if (failure) return Error{ErrorCode::kUnavailable, folder.string() + ": " + failure.message()};
  return ok();
}

// A run and the output of the program.
struct Run {
  Checked checked;
  std::string written;
};

Result<Run> run_once(const Tools& tools, const fs::path& executable, const RunOptions& options,
                     int fresh_byte) {
  MC_TRY(const TemporaryDirectory driver, TemporaryDirectory::create("mc-check"), "check");
  MC_TRY_VOID(link_driver(tools, driver.path()), "check");
  MC_TRY(const bool shares_memory, uses_managed_memory(executable), "check");
  MC_TRY(Device device,
         Device::start({.library = tools.executor,
                        .executable = executable,
                        .seed = options.seed,
                        .timeout_s = options.timeout_s,
                        .memory_bytes = options.memory_bytes,
                        .fresh_byte = fresh_byte,
                        .counts = options.counts,
                        .shares_memory = shares_memory}),
         "check");
  sandbox::Command command = command_of(tools, driver.path(), executable, options, device);
  command.goes_on = [&device] { return device.is_alive(); };
  MC_TRY(const sandbox::Completed done, sandbox::run(command), "run the program");
  Run run{{done.ending, {}, {}, 0, ""}, ""};
  run.written = done.out.text() + done.err.text() + sandbox::describe(done.ending);
  if (std::holds_alternative<sandbox::TimedOut>(done.ending)) device.cancel();
  auto report = device.finish();
  if (!report) {
    run.checked.unsupported.push_back(report.error().message);
    return run;
  }
  take_findings(located(report->findings, executable), run.checked);
  const std::string& lack = report->unsupported;
  const auto names_it = [&](const std::string& one) { return one.starts_with(lack); };
  if (!lack.empty() && std::ranges::none_of(run.checked.unsupported, names_it)) {
    run.checked.unsupported.push_back(lack);
  }
  run.checked.launches = report->launches;
  run.checked.profile = report->profile;
  return run;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// True if the output depends on the bytes of new memory: a word is the same in two runs and
// different in the third.  The files that the program writes are overwritten.
Result<bool> follows_from_new_memory(const Tools& tools, const fs::path& executable,
                                     RunOptions options) {
  options.on_output = [](bool, std::string_view) {};
  options.counts = false;
  std::vector<std::vector<std::string>> written;
  for (const int byte : kFreshBytes) {
    MC_TRY(const Run run, run_once(tools, executable, options, byte), "check");
    written.push_back(words_of(run.written));
  }
  const auto& [first, second, other] = std::tie(written[0], written[1], written[2]);
  if (first.size() != second.size()) return false;
  if (first.size() != other.size()) return true;
  for (size_t k = 0; k < first.size(); ++k) {
    if (first[k] == second[k] && first[k] != other[k]) return true;
  }
  return false;
}

}  // namespace

Status link_libraries(const Tools& tools, const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  // Linkers ask by any of these names, and the loader by the last.
  for (const std::string& name :
       {std::string("libcudart.so"), std::string("libcudart_static.a"), std::string("libcuda.so"),
        std::string("libcublas.so"), std::string("libcublasLt.so"),
        tools.client.filename().string()}) {
    fs::create_symlink(tools.client, folder / name, failure);
    if (failure) return Error{ErrorCode::kUnavailable, folder.string() + ": " + failure.message()};
  }
  return ok();
}

Result<Tools> find_tools(const Layout& layout, const compile::Progress& progress) {
  Tools tools;
  tools.executor = layout.library(kExecutor);
  if (!path_exists(tools.executor)) {
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
  const auto refused = std::ranges::find_if(nvcc_flags, is_relocatable);
  if (refused != nvcc_flags.end()) return Compiled{false, *refused + ": " + kRefusal + "\n"};
  const compile::CudaRuntime& runtime = tools.runtime;
  std::vector<std::string> argv = {runtime.nvcc.string()};
  argv.insert(argv.end(), runtime.code_flags.begin(), runtime.code_flags.end());
  argv.emplace_back(kHostLines);
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
  const std::string folder = executable.parent_path() / "lib";
  MC_TRY_VOID(link_libraries(tools, folder), "nvcc");
  visible.push_back(tools.client.parent_path().string());
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
  MC_TRY(Run run, run_once(tools, executable, options, -1), "check");
  std::vector<task::KernelFinding>& findings = run.checked.findings;
  const auto is_doubtful = [](const task::KernelFinding& one) {
    return one.kind == kUnwrittenCopy;
  };
  if (!run.checked.unsupported.empty()) std::erase_if(findings, is_doubtful);
  if (std::ranges::any_of(findings, is_doubtful)) {
    MC_TRY(const bool follows, follows_from_new_memory(tools, executable, options), "check");
    if (!follows) std::erase_if(findings, is_doubtful);
  }
  return std::move(run.checked);
}

}  // namespace mc::check
