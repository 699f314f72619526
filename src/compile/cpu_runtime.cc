// SPDX-License-Identifier: Apache-2.0
//
// Everything lies in one folder (once.h), named by a hash of what went in: the PyTorch, the
// compiler, and every file of emu/ and facade/, flags.txt too.  Where they lie is not part of it,
// so an installed folder that is moved, or replaced by an equal one, finds what was built.  The
// precompiled header works because g++ looks for mc_emu/prelude.h.gch in each directory of the
// include path before it looks for mc_emu/prelude.h.
#include "compile/cpu_runtime.h"

#include <future>
#include <sstream>

#include "compile/once.h"
#include "compile/tool.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFlagsBytesMax = 1 << 16;

struct Sources {
  fs::path emu;
  fs::path facade;
};

Result<std::vector<std::string>> read_flags(const Sources& sources) {
  MC_TRY(const std::string text, read_file(sources.emu / "flags.txt", kFlagsBytesMax), "flags");
  std::vector<std::string> flags;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.front() != '#') flags.push_back(line);
  }
  flags.push_back("-I" + (sources.emu / "include").string());
  flags.push_back("-I" + (sources.facade / "bind").string());
  return flags;
}

// Flags for one of the two ways: where its precompiled header lies, and its headers.
std::vector<std::string> way_flags(const fs::path& prelude, const std::vector<fs::path>& folders) {
  std::vector<std::string> flags = {"-I" + prelude.string()};
  for (const fs::path& folder : folders) {
    flags.push_back("-isystem");
    flags.push_back(folder.string());
  }
  return flags;
}

constexpr const char* kFull = "full";
constexpr const char* kThin = "thin";
constexpr const char* kMissing = "missing_names.txt";

std::vector<std::string> compile_command(const CpuRuntime& runtime,
                                         const std::vector<std::string>& way) {
  std::vector<std::string> argv = {runtime.compiler.string()};
  argv.insert(argv.end(), way.begin(), way.end());
  argv.insert(argv.end(), runtime.flags.begin(), runtime.flags.end());
  return argv;
}

Status build_header(const CpuRuntime& runtime, const std::vector<std::string>& way,
                    const Sources& sources, const fs::path& directory) {
  std::error_code failure;
  fs::create_directories(directory / "mc_emu", failure);
  std::vector<std::string> argv = compile_command(runtime, way);
  argv.insert(argv.end(), {"-x", "c++-header", (sources.emu / "include/mc_emu/prelude.h").string(),
                           "-o", (directory / "mc_emu/prelude.h.gch").string()});
  MC_TRY_VOID(run_tool(argv), "precompile the prelude");
  return ok();
}

// The prelude after preprocessing, with its macros.
Result<std::string> preprocessed(const CpuRuntime& runtime, const std::vector<std::string>& way,
                                 const Sources& sources) {
  std::vector<std::string> argv = compile_command(runtime, way);
  argv.insert(argv.end(), {"-E", "-dD", "-P", "-x", "c++",
                           (sources.emu / "include/mc_emu/prelude.h").string()});
  return run_tool(argv);
}

Status list_missing_names(const CpuRuntime& runtime, const Sources& sources,
                          const fs::path& directory) {
  MC_TRY(const std::string full, preprocessed(runtime, runtime.full_flags, sources), "names");
  MC_TRY(const std::string thin, preprocessed(runtime, runtime.thin_flags, sources), "names");
  return write_missing_names(full, thin, directory / kMissing);
}

Status build_shim(const CpuRuntime& runtime, const PyTorch& pytorch, const Sources& sources,
                  const fs::path& directory) {
  std::vector<std::string> argv = {runtime.compiler.string(),
                                   "-std=c++17",
                                   "-O2",
                                   "-fPIC",
                                   "-shared",
                                   "-w",
                                   "-I" + sources.emu.string(),
                                   "-I" + (sources.facade / "bind").string(),
                                   "-iquote",
                                   (sources.facade / "include").string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(sources.emu / "torch", failure)) {
    if (entry.path().extension() == ".cc") argv.push_back(entry.path().string());
  }
  argv.push_back((sources.facade / "runtime/tensors.cc").string());
  argv.insert(argv.end(),
              {"-o", (directory / "mc_shim.so").string(), "-L" + (pytorch.root / "lib").string(),
               "-ltorch_python", "-ltorch_cpu", "-ltorch", "-lc10", runtime.emulator.string()});
  MC_TRY_VOID(run_tool(argv), "build the shim");
  return ok();
}

// All at once: on two cores that is a minute and a half, on one twice as long.
Status build_all(const CpuRuntime& runtime, const PyTorch& pytorch, const Sources& sources,
                 const fs::path& directory) {
  auto full = std::async(std::launch::async, [&] {
    return build_header(runtime, runtime.full_flags, sources, directory / kFull);
  });
  auto thin = std::async(std::launch::async, [&]() -> Status {
    MC_TRY_VOID(build_header(runtime, runtime.thin_flags, sources, directory / kThin), "facade");
    return list_missing_names(runtime, sources, directory);
  });
  const Status shim = build_shim(runtime, pytorch, sources, directory);
  const Status of_full = full.get();
  const Status of_thin = thin.get();
  MC_TRY_VOID(of_full, "prelude");
  return of_thin ? shim : of_thin;
}

}  // namespace

Result<CpuRuntime> prepare_cpu_runtime(const PyTorch& pytorch, const Layout& layout,
                                       const Progress& progress) {
  const Sources sources{fs::weakly_canonical(layout.share("emu")),
                        fs::weakly_canonical(layout.share("facade"))};
  CpuRuntime runtime;
  runtime.emulator = layout.library("libmc_emu.so");
  MC_TRY(runtime.compiler, find_program("g++"), "CPU backend");
  MC_TRY(runtime.nm, find_program("nm"), "CPU backend");
  MC_TRY(runtime.addr2line, find_program("addr2line"), "CPU backend");
  MC_TRY(runtime.flags, read_flags(sources), "CPU backend");
  MC_TRY(const std::string emu,
         hash_of_files(sources.emu, {"flags.txt", "include", "torch", "runtime"}), "CPU backend");
  MC_TRY(const std::string facade, hash_of_files(sources.facade, {""}), "CPU backend");
  MC_TRY(const std::string compiler,
         run_tool({runtime.compiler.string(), "-dumpfullversion", "-dumpmachine"}), "CPU backend");
  runtime.fingerprint =
      content_hash({pytorch.version, pytorch.root.string(), pytorch.python_include.string(),
                    compiler, emu, facade, kNamesVersion});

  const Once once{"runtimes", runtime.fingerprint,
                  "preparing the CPU backend (one to four minutes, once)"};
  runtime.directory = once.folder();
  runtime.shim = runtime.directory / "mc_shim.so";
  runtime.visible = {sources.emu.string(), sources.facade.string(), runtime.directory.string(),
                     pytorch.root.string(), pytorch.python_include.string()};
  runtime.full_flags = way_flags(runtime.directory / kFull, pytorch.include_dirs());
  runtime.thin_flags = way_flags(runtime.directory / kThin, {sources.facade / "include"});
  runtime.thin_flags.push_back("-DMC_AT_BINDS");
  const auto build = [&](const fs::path& folder) {
    return build_all(runtime, pytorch, sources, folder);
  };
  MC_TRY_VOID(make_once(once, progress, build), "CPU backend");
  MC_TRY(
      runtime.facade,
      Facade::read({sources.facade / "include", sources.facade / "bind", sources.emu / "include"},
                   runtime.directory / kMissing),
      "CPU backend");
  MC_TRY(runtime.names,
         CudaNames::read(sources.emu / "cuda_names.txt", pytorch.include_dirs(),
                         sources.emu / "include"),
         "CPU backend");
  return runtime;
}

void CpuRuntime::leave_facade() {
  facade.reset();
  fingerprint = content_hash({fingerprint, "full headers"});
}

}  // namespace mc::compile
