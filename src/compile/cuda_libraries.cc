// SPDX-License-Identifier: Apache-2.0
#include "compile/cuda_libraries.h"

#include <algorithm>
#include <functional>
#include <future>
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

constexpr const char* kClientName = "libcudart.so.13";

Flags files_in(const fs::path& folder) {
  Flags found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string kind = entry.path().extension().string();
    if (kind == ".cc" || kind == ".cu") found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  return found;
}

Flags aten_command(const PyTorch& pytorch, const fs::path& toolkit, const fs::path& facade) {
  Flags argv = {"g++",
                "-std=c++17",
                "-O2",
                "-fPIC",
                "-shared",
                "-w",
                "-I" + (facade / "bind").string(),
                "-iquote",
                (facade / "include").string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  argv.push_back("-isystem" + (toolkit / "include").string());
  append(argv, files_in(facade / "runtime"));
  append(argv, {"-L" + (pytorch.root / "lib").string(), "-ltorch_python", "-ltorch_cuda",
                "-ltorch_cpu", "-ltorch", "-lc10_cuda", "-lc10"});
  return argv;
}

// The sources of a folder in device/, and those that both sides share.
Flags sources_in(const fs::path& sources, const char* folder) {
  Flags found = files_in(sources / folder);
  found.push_back((sources / "arena_map.cc").string());
  return found;
}

// The compiler is nvcc, since the sources have kernels.
Flags executor_command(const CudaRuntime& runtime, const fs::path& sources) {
  Flags argv = {runtime.nvcc.string(),
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
  append(argv, sources_in(sources, "cuda"));
  return argv;
}

// PyTorch's libraries require the SONAME and the version of its symbols.
Flags client_command(const fs::path& toolkit, const fs::path& sources) {
  Flags argv = {"g++",
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
  append(argv, sources_in(sources, "client"));
  return argv;
}

// The command that writes a list of CUDA's functions for the client, into a folder that follows.
Flags client_generator(const PyTorch& pytorch, const fs::path& toolkit, const fs::path& sources) {
  return {pytorch.python.string(), "-P", (sources / "client/unsupported.py").string(),
          (toolkit / "include").string()};
}

// Compiles `files` into a library with `argv`, after `generator`, which writes a header for them.
Result<fs::path> library(const std::string& kind, const std::string& name, Flags argv,
                         Flags generator, const Result<std::string>& files, const PyTorch& pytorch,
                         const Progress& progress) {
  MC_TRY(const std::string hash, files, kind + " library");
  const Once once{kind, content_hash({pytorch.version, joined(argv), hash}),
                  "building the " + kind + " library for PyTorch " + pytorch.version + " (once)"};
  const auto build = [&](const fs::path& folder) -> Status {
    if (!generator.empty()) {
      generator.push_back(folder.string());
      MC_TRY_VOID(run_tool(generator), "generate a header");
    }
    append(argv, {"-I" + folder.string(), "-o", (folder / name).string()});
    MC_TRY_VOID(run_tool(argv), "build it");
    return ok();
  };
  MC_TRY(const fs::path folder, make_once(once, progress, build), kind + " library");
  return folder / name;
}

// The library needs PyTorch's host kernels, and the client, which the candidate's process preloads.
Flags operators_command(const PyTorch& pytorch, const fs::path& toolkit, const fs::path& sources) {
  Flags argv = {"g++", "-std=c++17", "-O1", "-fPIC", "-shared", "-w", "-I" + sources.string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  argv.push_back("-isystem" + (toolkit / "include").string());
  for (const char* name : {"candidate.cc", "device.cc"}) {
    argv.push_back((sources / "operators" / name).string());
  }
  append(argv, {"-L" + (pytorch.root / "lib").string(), "-ltorch_cuda", "-ltorch_cpu", "-lc10_cuda",
                "-lc10"});
  return argv;
}

// The hash of a folder of device/, and of the sources that both sides of the channel share.
Result<std::string> hash_in(const fs::path& device, const char* folder) {
  return hash_of_files(device, {folder, "arena_map.cc", "arena_map.h", "channel.h", "check.h",
                                "commands.h", "library_calls.h", "library_calls.inc"});
}

// Builds libraries in parallel, since each needs a compiler for up to a minute.
class Builds {
 public:
  Builds(const PyTorch& pytorch, const CudaRuntime& runtime, const Layout& layout,
         const Progress& progress)
      : pytorch_(pytorch),
        runtime_(runtime),
        progress_(progress),
        device_(fs::weakly_canonical(layout.share("device"))),
        facade_(device_ / "facade") {}

  using Library = std::future<Result<fs::path>>;
  Library aten() const {
    return start("aten", "aten.so", aten_command(pytorch_, runtime_.root, facade_), {},
                 hash_of_files(facade_, {"runtime", "bind", "include"}));
  }
  Library client() const {
    return start("client", kClientName, client_command(runtime_.root, device_),
                 client_generator(pytorch_, runtime_.root, device_), hash_in(device_, "client"));
  }
  Library executor() const {
    return start("executor", "executor.so", executor_command(runtime_, device_), {},
                 hash_in(device_, "cuda"));
  }
  Library operators() const {
    return start("operators", "operators.so", operators_command(pytorch_, runtime_.root, device_),
                 {}, hash_of_files(device_, {"operators"}));
  }

 private:
  Library start(const std::string& kind, const std::string& name, Flags argv, Flags generator,
                const Result<std::string>& files) const {
    const Progress note = [this](std::string_view step) {
      const std::lock_guard lock(mutex_);
      progress_(step);
    };
    return std::async(std::launch::async, library, kind, name, std::move(argv),
                      std::move(generator), files, std::cref(pytorch_), note);
  }

  // Constant after construction.
  const PyTorch& pytorch_;
  const CudaRuntime& runtime_;
  const Progress& progress_;
  const fs::path device_, facade_;
  mutable std::mutex mutex_;  // Guards progress_, which is the caller's.
};

}  // namespace

Result<CudaLibraries> prepare_cuda_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                             const Layout& layout, const Progress& progress) {
  const Builds builds(pytorch, runtime, layout, progress);
  auto aten = builds.aten(), executor = builds.executor(), client = builds.client();
  CudaLibraries libraries;
  MC_TRY(libraries.aten, aten.get(), "set-up");
  MC_TRY(libraries.executor, executor.get(), "set-up");
  MC_TRY(libraries.client, client.get(), "set-up");
  return libraries;
}

Result<PtxLibraries> prepare_ptx_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                           const Layout& layout, const Progress& progress) {
  const Builds builds(pytorch, runtime, layout, progress);
  auto aten = builds.aten(), operators = builds.operators(), client = builds.client();
  PtxLibraries libraries;
  MC_TRY(libraries.aten, aten.get(), "set-up");
  MC_TRY(libraries.operators, operators.get(), "set-up");
  MC_TRY(libraries.client, client.get(), "set-up");
  return libraries;
}

}  // namespace mc::compile
