// SPDX-License-Identifier: Apache-2.0
//
// The flags follow musa_extension.py of torch_musa for PyTorch 2.7.1: its include_paths,
// _write_ninja_file_to_build_library and _prepare_ldflags.  Unlike its load_inline, the
// architecture is always given.
#include "compile/musa_runtime.h"

#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "compile/once.h"
#include "compile/tool.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstallToolkit = "install the MUSA SDK and set MUSA_HOME";
constexpr const char* kAtenSources[] = {"device/facade/runtime/record.cc",
                                        "device/facade/runtime/guard.cc"};

Flags include_flags(const PyTorch& pytorch, const fs::path& home) {
  const fs::path compatible = pytorch.torch_musa / "share/generated_cuda_compatible";
  Flags flags;
  for (const fs::path& folder :
       {compatible / "aten/src", compatible / "include",
        compatible / "include/torch/csrc/api/include",
        pytorch.torch_musa / "share/torch_musa_codegen", pytorch.torch_musa.parent_path(),
        home / "include", pytorch.root / "include", pytorch.root / "include/torch/csrc/api/include",
        pytorch.python_include}) {
    append(flags, {"-isystem", folder.string()});
  }
  return flags;
}

Flags link_flags(const PyTorch& pytorch, const MusaToolkit& toolkit) {
  return {"-L" + (pytorch.root / "lib").string(),
          "-lc10",
          "-ltorch_cpu",
          "-L" + (pytorch.torch_musa / "lib").string(),
          "-ltorch",
          "-ltorch_python",
          "-lmusa_python",
          "-lmusa_kernels",
          "-L" + toolkit.libraries.string(),
          "-lmusart"};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// The SONAME from readelf's output: the last word of the line with `tag`, without its brackets.
Result<std::string> soname_of(const fs::path& library) {
  MC_TRY(const fs::path readelf, find_program("readelf"), "SONAME");
  MC_TRY(const std::string text, run_tool({readelf.string(), "-d", library.string()}), "SONAME");
  const size_t line = text.find("(SONAME)");
  const size_t begin = text.find('[', line);
  const size_t end = text.find(']', begin);
  if (line == std::string::npos || end == std::string::npos) {
    return Error{ErrorCode::kUnavailable, library.string() + " has no SONAME"};
  }
  return text.substr(begin + 1, end - begin - 1);
}

// ---- Native code of the device's processes ------------------------------------------------------

struct Folders {
  fs::path share;     // The folder that contains device/.
  fs::path includes;  // The include folder of MUSA.
  fs::path names;     // The folder of the files that names.py and unsupported.py write.
};

// The command of g++ for sources of device/ with MUSA names.
Flags device_command(const Folders& folders) {
  return {"g++",
          "-std=c++20",
          "-O2",
          "-fPIC",
          "-include",
          (folders.names / "names.h").string(),
          "-I" + folders.names.string(),
          "-I" + (folders.share / "device").string(),
          "-isystem",
          folders.includes.string(),
          "-static-libstdc++",
          "-static-libgcc"};
}

void append_sources(Flags& argv, const fs::path& device, const char* folder) {
  argv.push_back((device / "arena_map.cc").string());
  for (const auto& entry : fs::directory_iterator(device / folder)) {
    if (entry.path().extension() == ".cc") argv.push_back(entry.path().string());
  }
}

Status make_executor(const Folders& folders, const CudaRuntime& runtime, const fs::path& folder) {
  const fs::path device = folders.share / "device";
  const std::string kernels = (folder / "kernels.o").string();
  MC_TRY_VOID(run_tool({"env",
                        "-u",
                        "CC",
                        runtime.nvcc.string(),
                        "-x",
                        "musa",
                        "--offload-arch=" + runtime.architecture,
                        "-std=c++17",
                        "-O2",
                        "-fPIC",
                        "-include",
                        (folders.names / "names.h").string(),
                        "-I" + folders.names.string(),
                        "-I" + device.string(),
                        "-isystem",
                        folders.includes.string(),
                        "-c",
                        (device / "cuda/kernels.cu").string(),
                        "-o",
                        kernels}),
              "kernels");
  Flags argv = device_command(folders);
  append_sources(argv, device, "cuda");
  append(argv,
         {kernels, "-shared", "-Wl,--exclude-libs,ALL", "-L" + musa_toolkit().libraries.string(),
          "-lmusart", "-lmusa", "-o", (folder / "executor.so").string()});
  MC_TRY_VOID(run_tool(argv), "device process");
  return ok();
}

// The SONAMEs of the runtime and the driver, which other libraries refer to.
Result<Flags> client_names() {
  const fs::path libraries = musa_toolkit().libraries;
  MC_TRY(const std::string runtime, soname_of(libraries / "libmusart.so"), "runtime");
  MC_TRY(const std::string driver, soname_of(libraries / "libmusa.so"), "driver");
  return Flags{runtime, driver};
}

Status make_client(const Folders& folders, const fs::path& folder) {
  const fs::path device = folders.share / "device";
  MC_TRY(const Flags sonames, client_names(), "client");
  Flags argv = device_command(folders);
  append_sources(argv, device, "client");
  append(argv, {"-shared", "-Wl,-z,defs",
                "-Wl,--version-script=" + (device / "musa/libmusart.map").string(),
                "-Wl,-soname," + sonames[0], "-o", (folder / "client.so").string()});
  MC_TRY_VOID(run_tool(argv), "client");
  std::error_code failure;
  for (const std::string& name : sonames) fs::create_symlink("client.so", folder / name, failure);
  return ok();
}

Status make_aten(const Folders& folders, const PyTorch& pytorch, const fs::path& folder) {
  Flags argv = {"g++",
                "-std=c++17",
                "-O2",
                "-fPIC",
                "-shared",
                "-w",
                "-I" + (folders.share / "device/facade/runtime").string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  for (const char* source : kAtenSources) argv.push_back((folders.share / source).string());
  append(argv, {"-L" + (pytorch.root / "lib").string(), "-ltorch_python", "-ltorch_cpu", "-ltorch",
                "-lc10", "-o", (folder / "aten.so").string()});
  MC_TRY_VOID(run_tool(argv), "ATen library");
  return ok();
}

}  // namespace

MusaToolkit musa_toolkit() {
  MusaToolkit toolkit;
  toolkit.home = variable("MUSA_HOME");
  if (toolkit.home.empty()) toolkit.home = variable("MUSA_PATH");
  if (toolkit.home.empty()) toolkit.home = "/usr/local/musa";
  const std::string given = variable("PYTORCH_MCC");
  toolkit.mcc =
      given.empty() ? toolkit.home / "bin/mcc" : fs::path(given.substr(given.rfind(' ') + 1));
  toolkit.libraries =
      path_exists(toolkit.home / "lib64") ? toolkit.home / "lib64" : toolkit.home / "lib";
  return toolkit;
}

Result<CudaRuntime> find_musa_runtime(const PyTorch& pytorch, const std::string& architecture) {
  const MusaToolkit toolkit = musa_toolkit();
  if (!path_exists(toolkit.mcc)) {
    return Error{ErrorCode::kUnavailable, "no " + toolkit.mcc.string() + ": " + kInstallToolkit};
  }
  if (pytorch.torch_musa.empty()) {
    return Error{ErrorCode::kUnavailable,
                 pytorch.python.string() + " has no torch_musa: install it with its PyTorch"};
  }
  CudaRuntime runtime;
  runtime.architecture = architecture;
  runtime.nvcc = toolkit.mcc;
  runtime.nvcc_name = "mcc";
  runtime.root = toolkit.home;
  MC_TRY(runtime.compiler, find_program("g++"), "MUSA backend");
  MC_TRY(runtime.nm, find_program("nm"), "MUSA backend");
  MC_TRY(const std::string mcc_version, run_tool({runtime.nvcc.string(), "--version"}), "mcc");
  MC_TRY(const std::string compiler_version,
         run_tool({runtime.compiler.string(), "-dumpfullversion", "-dumpmachine"}), "g++");
  runtime.cxx_flags = {"-DTORCH_API_INCLUDE_EXTENSION_H"};
  append(runtime.cxx_flags, include_flags(pytorch, toolkit.home));
  runtime.nvcc_flags = runtime.cxx_flags;
  append(runtime.cxx_flags, {"-fPIC", "-std=c++17"});
  append(runtime.nvcc_flags, {"-x", "musa", "--offload-arch=" + architecture, "-fPIC"});
  runtime.print_flags = {"-fno-caret-diagnostics"};
  runtime.link_flags = link_flags(pytorch, toolkit);
  runtime.cxx_prelude = "#include <torch/extension.h>\n";
  runtime.cuda_prelude = "#include <torch/types.h>\n#include <musa.h>\n#include <musa_runtime.h>\n";
  runtime.visible = {toolkit.home.string(), toolkit.mcc.parent_path().string(),
                     pytorch.root.string(), pytorch.torch_musa.string(),
                     pytorch.python_include.string()};
  runtime.fingerprint = content_hash({"musa", mcc_version, compiler_version, pytorch.version,
                                      architecture, joined(runtime.nvcc_flags),
                                      joined(runtime.cxx_flags), joined(runtime.link_flags)});
  return runtime;
}

Result<MusaLibraries> prepare_musa_libraries(const PyTorch& pytorch, const CudaRuntime& runtime,
                                             const Layout& layout, const Progress& progress) {
  const fs::path share = fs::weakly_canonical(layout.share("device")).parent_path();
  MC_TRY(const std::string files, hash_of_files(share, {"device"}), "device");
  const Once once{"musa", content_hash({runtime.fingerprint, pytorch.root.string(), files}),
                  "building the MUSA device process (once)"};
  const auto build = [&](const fs::path& folder) -> Status {
    const Folders folders{share, runtime.root / "include", folder / "names"};
    fs::create_directory(folders.names);
    MC_TRY_VOID(run_tool({pytorch.python.string(), "-P", (share / "device/musa/names.py").string(),
                          (share / "device").string(), folders.names.string()}),
                "names of MUSA");
    MC_TRY_VOID(
        run_tool({pytorch.python.string(), "-P", (share / "device/client/unsupported.py").string(),
                  folders.includes.string(), folders.names.string()}),
        "functions of MUSA");
    MC_TRY_VOID(make_aten(folders, pytorch, folder), "set-up");
    MC_TRY_VOID(make_executor(folders, runtime, folder), "set-up");
    return make_client(folders, folder);
  };
  MC_TRY(const fs::path folder, make_once(once, progress, build), "MUSA device process");
  MC_TRY(Flags names, client_names(), "set-up");
  return MusaLibraries{folder / "aten.so", folder / "executor.so", folder / "client.so",
                       std::move(names)};
}

}  // namespace mc::compile
