// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  Everything lies in one directory of the cache, named by a hash of what went
// in: the PyTorch, the compiler, and every file of emu/ and facade/, flags.txt too.  Where they lie
// is not part of it, so an installed folder that is moved, or replaced by an equal one, finds what
// was built. It is built in a private directory and renamed into place, under a lock that makes a
// second process wait instead of building the same.  The precompiled header works because g++ looks
// for mc_emu/prelude.h.gch in each directory of the include path before it looks for
// mc_emu/prelude.h.
#include "compile/cpu_runtime.h"

#include <algorithm>
#include <functional>
#include <future>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>

#include "compile/tool.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHeaderBytesMax = 4 << 20;
constexpr size_t kRuntimesKept = 4;

struct Sources {
  fs::path emu;
  fs::path facade;
};

// All files that candidates or the shim are compiled from, in a fixed order.
Result<std::string> hash_of(const Sources& sources) {
  std::vector<fs::path> files = {sources.emu / "flags.txt"};
  for (const fs::path& folder :
       {sources.emu / "include", sources.emu / "torch", sources.emu / "runtime", sources.facade}) {
    std::error_code failure;
    for (const auto& entry : fs::recursive_directory_iterator(folder, failure)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  std::string all;
  for (const fs::path& file : files) {
    MC_TRY(const std::string text, read_file(file, kHeaderBytesMax), "emulator");
    all += fs::relative(file, sources.emu).string() + '\0' + content_hash({text});
  }
  return content_hash({all});
}

Result<std::vector<std::string>> read_flags(const Sources& sources) {
  MC_TRY(const std::string text, read_file(sources.emu / "flags.txt", kHeaderBytesMax), "flags");
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

// The two long ones at once: each takes most of a minute.
Status build_all(const CpuRuntime& runtime, const PyTorch& pytorch, const Sources& sources,
                 const fs::path& directory) {
  auto headers = std::async(std::launch::async, [&]() -> Status {
    MC_TRY_VOID(build_header(runtime, runtime.full_flags, sources, directory / kFull), "prelude");
    MC_TRY_VOID(build_header(runtime, runtime.thin_flags, sources, directory / kThin), "facade");
    return list_missing_names(runtime, sources, directory);
  });
  const Status shim = build_shim(runtime, pytorch, sources, directory);
  const Status built = headers.get();
  return built ? shim : built;
}

Result<Fd> lock(const fs::path& path) {
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open() || ::flock(fd.get(), LOCK_EX) != 0) {
    return system_error(ErrorCode::kIo, "lock " + path.string());
  }
  return fd;
}

// Each runtime takes half a gigabyte; those of former PyTorches and emulators go, oldest first.
void forget_old_runtimes(const fs::path& home) {
  std::error_code failure;
  std::vector<fs::directory_entry> runtimes;
  for (const auto& entry : fs::directory_iterator(home, failure)) {
    if (entry.is_directory(failure)) runtimes.push_back(entry);
  }
  std::ranges::sort(runtimes, std::greater(),
                    [](const fs::directory_entry& entry) { return entry.last_write_time(); });
  for (size_t i = kRuntimesKept; i < runtimes.size(); ++i) fs::remove_all(runtimes[i], failure);
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
  MC_TRY(const std::string hash, hash_of(sources), "CPU backend");
  MC_TRY(const std::string compiler,
         run_tool({runtime.compiler.string(), "-dumpfullversion", "-dumpmachine"}), "CPU backend");
  runtime.fingerprint = content_hash(
      {pytorch.version, pytorch.root.string(), pytorch.python_include.string(), compiler, hash});

  const fs::path home = cache_directory() / "runtimes";
  std::error_code failure;
  fs::create_directories(home, failure);
  runtime.directory = home / runtime.fingerprint.substr(0, 32);
  runtime.shim = runtime.directory / "mc_shim.so";
  runtime.visible = {sources.emu.string(), sources.facade.string(), runtime.directory.string(),
                     pytorch.root.string(), pytorch.python_include.string()};
  runtime.full_flags = way_flags(runtime.directory / kFull, pytorch.include_dirs());
  runtime.thin_flags = way_flags(runtime.directory / kThin, {sources.facade / "include"});
  const auto with_facade = [&]() -> Result<CpuRuntime> {
    MC_TRY(
        runtime.facade,
        Facade::read({sources.facade / "include", sources.facade / "bind", sources.emu / "include"},
                     runtime.directory / kMissing),
        "CPU backend");
    return runtime;
  };
  MC_TRY(const Fd held, lock(home / "lock"), "CPU backend");
  if (fs::exists(runtime.directory)) return with_facade();
  progress("preparing the CPU backend for PyTorch " + pytorch.version + " (about a minute, once)");
  MC_TRY(TemporaryDirectory work, TemporaryDirectory::create_in(home, "work"), "CPU backend");
  MC_TRY_VOID(build_all(runtime, pytorch, sources, work.path()), "CPU backend");
  fs::permissions(work.path(), fs::perms(0755), failure);
  fs::rename(work.path(), runtime.directory, failure);
  if (failure) return Error{ErrorCode::kIo, "cannot publish " + runtime.directory.string()};
  forget_old_runtimes(home);
  return with_facade();
}

void CpuRuntime::leave_facade() {
  facade.reset();
  fingerprint = content_hash({fingerprint, "full headers"});
}

}  // namespace mc::compile
