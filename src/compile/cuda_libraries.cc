// SPDX-License-Identifier: Apache-2.0
#include "compile/cuda_libraries.h"

#include <algorithm>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compile/once.h"
#include "compile/tool.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAtenSources[] = {"emu/torch/shim.cc", "emu/torch/shim_record.cc",
                                        "emu/torch/shim_guard.cc", "facade/runtime/tensors.cc",
                                        "facade/runtime/cuda.cc"};
constexpr const char* kClientName = "libcudart.so.13";

std::vector<std::string> aten_command(const PyTorch& pytorch, const fs::path& toolkit,
                                      const fs::path& share) {
  std::vector<std::string> argv = {"g++",
                                   "-std=c++17",
                                   "-O2",
                                   "-fPIC",
                                   "-shared",
                                   "-w",
                                   "-I" + (share / "emu").string(),
                                   "-I" + (share / "facade/bind").string(),
                                   "-iquote",
                                   (share / "facade/include").string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  argv.push_back("-isystem" + (toolkit / "include").string());
  for (const char* source : kAtenSources) argv.push_back((share / source).string());
  argv.insert(argv.end(), {"-L" + (pytorch.root / "lib").string(), "-ltorch_python", "-ltorch_cuda",
                           "-ltorch_cpu", "-ltorch", "-lc10_cuda", "-lc10"});
  return argv;
}

// The sources of a folder in device/, and what both sides share.
std::vector<std::string> sources_in(const fs::path& sources, const char* folder) {
  std::vector<std::string> found = {(sources / "arena_map.cc").string()};
  for (const auto& entry : fs::directory_iterator(sources / folder)) {
    const std::string kind = entry.path().extension().string();
    if (kind == ".cc" || kind == ".cu") found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  return found;
}

// The compiler is nvcc, since there are kernels.
std::vector<std::string> executor_command(const CudaRuntime& runtime, const fs::path& sources) {
  std::vector<std::string> argv = {runtime.nvcc.string(),
                                   "-std=c++20",
                                   "-O2",
                                   "-shared",
                                   "-arch=sm_" + runtime.architecture,
                                   "-ccbin=" + runtime.compiler.string(),
                                   "-Xcompiler=-fPIC,-static-libstdc++,-static-libgcc",
                                   "-Xlinker=--exclude-libs,ALL,-z,defs",
                                   "-I" + sources.string(),
                                   "-L" + (runtime.root / "lib64/stubs").string(),
                                   "-lcuda"};
  std::ranges::move(sources_in(sources, "cuda"), std::back_inserter(argv));
  return argv;
}

// PyTorch's libraries ask for the SONAME and the version of its symbols.
std::vector<std::string> client_command(const fs::path& toolkit, const fs::path& sources) {
  std::vector<std::string> argv = {
      "g++",
      "-std=c++20",
      "-O2",
      "-fPIC",
      "-shared",
      "-I" + sources.string(),
      "-isystem" + (toolkit / "include").string(),
      "-static-libstdc++",
      "-static-libgcc",
      "-Wl,-z,defs",
      "-Wl,--version-script=" + (sources / "client/libcudart.map").string(),
      std::string("-Wl,-soname,") + kClientName};
  std::ranges::move(sources_in(sources, "client"), std::back_inserter(argv));
  return argv;
}

// The library that `argv` makes of `files`.
Result<fs::path> library(const std::string& kind, const std::string& name,
                         std::vector<std::string> argv, const std::string& files,
                         const PyTorch& pytorch, const Progress& progress) {
  std::string command;
  for (const std::string& word : argv) command += word + '\0';
  const Once once{kind, content_hash({pytorch.version, command, files}),
                  "building the " + kind + " library for PyTorch " + pytorch.version + " (once)"};
  const auto build = [&](const fs::path& folder) -> Status {
    argv.insert(argv.end(), {"-o", (folder / name).string()});
    MC_TRY_VOID(run_tool(argv), "build it");
    return ok();
  };
  MC_TRY(const fs::path folder, make_once(once, progress, build), kind + " library");
  return folder / name;
}

}  // namespace

// They are made side by side, since each takes a compiler up to a minute.
Result<CudaLibraries> prepare_cuda_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                             const Layout& layout, const Progress& progress) {
  const fs::path share = fs::weakly_canonical(layout.share("emu")).parent_path();
  const fs::path device = fs::weakly_canonical(layout.share("device"));
  MC_TRY(const std::string aten_files,
         hash_of_files(share, {"emu/torch", "facade/runtime", "facade/bind", "facade/include"}),
         "ATen library");
  MC_TRY(const std::string device_files, hash_of_files(device, {""}), "device library");
  std::mutex mutex;
  const Progress note = [&](std::string_view step) {
    const std::lock_guard lock(mutex);
    progress(step);
  };
  const auto start = [&](const std::string& kind, const std::string& name,
                         std::vector<std::string> argv, const std::string& files) {
    return std::async(std::launch::async, library, kind, name, std::move(argv), files,
                      std::cref(pytorch), std::cref(note));
  };
  auto aten = start("aten", "aten.so", aten_command(pytorch, runtime.root, share), aten_files);
  auto executor = start("executor", "executor.so", executor_command(runtime, device), device_files);
  auto client = start("client", kClientName, client_command(runtime.root, device), device_files);
  CudaLibraries libraries;
  MC_TRY(libraries.aten, aten.get(), "set-up");
  MC_TRY(libraries.executor, executor.get(), "set-up");
  MC_TRY(libraries.client, client.get(), "set-up");
  return libraries;
}

}  // namespace mc::compile
