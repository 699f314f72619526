// SPDX-License-Identifier: Apache-2.0
//
// The flags are those of torch/utils/cpp_extension.py in PyTorch 2.11; each group below names the
// function or constant that it follows.  A candidate must compile here as it would with load_inline
// on the user's machine, and its time must not depend on additional flags.
#include "compile/cuda_runtime.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "compile/once.h"
#include "compile/tool.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMissing = "missing_names.txt";
constexpr const char* kHeader = "extension.h";    // Its precompiled form is in the same folder.
constexpr const char* kQuickVersion = "quick/1";  // The version of quick compilation (quick.h).
const std::string kWithBinding = "#define MC_AT_BINDS 1\n";
constexpr const char* kInstallToolkit =
    "install the CUDA toolkit 13.0 and set CUDA_HOME, or pip install "
    "\"cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]==13.0.2\"";

// Folders that may contain the programs of a toolkit, best first.
std::vector<fs::path> program_folders() {
  std::vector<fs::path> folders;
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(fs::path(home) / "bin");
  if (const char* path = std::getenv("PATH")) {
    std::istringstream stream{std::string(path)};
    for (std::string folder; std::getline(stream, folder, ':');) {
      if (folder.starts_with('/')) folders.push_back(folder);
    }
  }
  folders.push_back("/usr/local/cuda/bin");
  return folders;
}

std::vector<fs::path> nvcc_candidates(const PyTorch& pytorch) {
  std::vector<fs::path> folders = program_folders();
  if (!pytorch.root.empty()) {
    folders.push_back(pytorch.root.parent_path() / "nvidia/cu13/bin");
  }
  return folders;
}

// The rule of _check_cuda_version: the major versions must agree.  "2.11.0+cu130" contains
// PyTorch's.
Status check_fit(const PyTorch& pytorch, const std::string& nvcc_version) {
  if (!path_exists(pytorch.root / "lib/libtorch_cuda.so")) {
    return Error{ErrorCode::kUnavailable,
                 "PyTorch " + pytorch.version + " was built without CUDA: " +
                     pytorch.python.string() + " -m pip install --force-reinstall torch==2.11.0"};
  }
  const std::string release = release_of_nvcc(nvcc_version);
  const size_t suffix = pytorch.version.find("+cu");
  if (suffix == std::string::npos) return ok();
  int wanted = 0;
  const std::string digits = pytorch.version.substr(suffix + 3);
  std::from_chars(digits.data(), digits.data() + digits.size(), wanted);
  if (release.substr(0, release.find('.')) == std::to_string(wanted / 10)) return ok();
  return Error{ErrorCode::kUnavailable, "nvcc " + release + " does not fit PyTorch " +
                                            pytorch.version + ": " + kInstallToolkit};
}

Status check_architecture(const fs::path& nvcc, const std::string& architecture) {
  if (architecture.size() < 2 || architecture.size() > 3 ||
      !std::ranges::all_of(architecture, [](unsigned char c) { return std::isdigit(c) != 0; })) {
    return Error{ErrorCode::kInvalidInput,
                 "\"" + architecture + "\" is no compute capability such as 90"};
  }
  MC_TRY(const std::string known, run_tool({nvcc.string(), "--list-gpu-arch"}), "nvcc");
  if (("\n" + known).find("\ncompute_" + architecture + "\n") != std::string::npos) return ok();
  return Error{ErrorCode::kUnavailable, nvcc.string() + " cannot compile for compute capability " +
                                            architecture +
                                            ": install a CUDA toolkit that knows the device"};
}

// A toolkit in /usr is on the default path, and -I/usr/include would break #include_next.
Flags as_include_flags(std::vector<fs::path> folders) {
  std::erase(folders, fs::path("/usr/include"));
  Flags flags;
  for (const fs::path& folder : folders) {
    flags.push_back("-isystem");
    flags.push_back(folder.string());
  }
  return flags;
}

// include_paths("cuda") and the Python headers.
Flags include_flags(const PyTorch& pytorch, const fs::path& root) {
  return as_include_flags({pytorch.root / "include",
                           pytorch.root / "include/torch/csrc/api/include", root / "include",
                           pytorch.python_include});
}

// _write_ninja_file_to_build_library: common_cflags and cflags.
Flags cxx_flags(const Flags& includes) {
  Flags flags = {"-DTORCH_API_INCLUDE_EXTENSION_H"};
  append(flags, includes);
  append(flags, {"-fPIC", "-std=c++17"});
  return flags;
}

// The same function's cuda_flags: common_cflags, COMMON_NVCC_FLAGS, the architecture. -std is added
// later, when the candidate gives none. -ccbin names the compiler explicitly that nvcc would find
// by itself.  NVTX is disabled: CUB's headers include it, and it looks for its library at run time
// (dlopen, getenv), so that a candidate with CUB would seem to load code.
Flags nvcc_flags(const Flags& includes, const CudaRuntime& runtime) {
  Flags flags = {"-DTORCH_API_INCLUDE_EXTENSION_H"};
  append(flags, includes);
  append(flags, {"-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__",
                 "-D__CUDA_NO_BFLOAT16_CONVERSIONS__", "-D__CUDA_NO_HALF2_OPERATORS__",
                 "-DNVTX_DISABLE", "--expt-relaxed-constexpr", "--compiler-options=-fPIC",
                 "-ccbin=" + runtime.compiler.string()});
  append(flags, runtime.code_flags);
  return flags;
}

// A toolkit from PyPI has libcudart.so.13 and no libcudart.so.
std::string cudart_flag(const fs::path& folder) {
  if (path_exists(folder / "libcudart.so")) return "-lcudart";
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libcudart.so.")) return "-l:" + name;
  }
  return "-lcudart";
}

Flags cudart_flags(const fs::path& root) {
  const fs::path folder = path_exists(root / "lib64") ? root / "lib64" : root / "lib";
  return {"-L" + folder.string(), cudart_flag(folder)};
}

// The function _prepare_ldflags.
Flags link_flags(const PyTorch& pytorch, const fs::path& root) {
  Flags flags = {"-L" + (pytorch.root / "lib").string(),
                 "-lc10",
                 "-lc10_cuda",
                 "-ltorch_cpu",
                 "-ltorch_cuda",
                 "-ltorch",
                 "-ltorch_python"};
  append(flags, cudart_flags(root));
  return flags;
}

// From 9.0 on, instructions such as wgmma exist only in the target with an "a", whose code runs
// only on that architecture.  It is the device's own, so nothing is lost.
std::string with_features(std::string_view architecture) {
  std::string name(architecture);
  if (name.size() > 2 || name >= "90") name += 'a';
  return name;
}

Flags code_flags(const std::string& architecture, CodeKind code) {
  if (code == CodeKind::kMachine) return {gencode_flag(architecture)};
  const std::string name = with_features(architecture);
  // The machine code is not used, but sources that ptxas rejects must not compile.
  return {"-gencode=arch=compute_" + name + ",code=[compute_" + name + ",sm_" + name + "]",
          "--fatbin-options=-compress=false", "-lineinfo"};
}

// The preludes, preprocessed for the host, with their macros.
Result<std::string> preprocessed(const CudaRuntime& runtime, const Flags& cxx_flags,
                                 const std::string& prelude) {
  MC_TRY(const TemporaryDirectory work, TemporaryDirectory::create("mc-names"), "names");
  const fs::path source = work.path() / "names.cpp";
  MC_TRY_VOID(write_file_atomically(source, prelude), "names");
  Flags argv = {runtime.compiler.string()};
  append(argv, cxx_flags);
  append(argv, {"-I" + (runtime.root / "include").string(), "-E", "-dD", "-P", source.string()});
  return run_tool(argv);
}

}  // namespace

Result<fs::path> find_nvcc(const PyTorch& pytorch) {
  for (const fs::path& folder : nvcc_candidates(pytorch)) {
    std::error_code failure;
    const fs::path nvcc = fs::canonical(folder / "nvcc", failure);
    if (!failure) return nvcc;
  }
  return Error{ErrorCode::kUnavailable, std::string("nvcc is missing: ") + kInstallToolkit};
}

std::string release_of_nvcc(const std::string& version_text) {
  constexpr std::string_view kRelease = "release ";
  const size_t begin = version_text.find(kRelease);
  if (begin == std::string::npos) return "";
  const size_t number = begin + kRelease.size();
  return version_text.substr(number, version_text.find(',', number) - number);
}

namespace {

// The flags of nvcc_flags() in NVRTC's form.
Flags nvrtc_flags(const CudaRuntime& runtime) {
  Flags flags = {"-arch=sm_" + with_features(runtime.architecture), "--ptxas-options=-v",
                 "-I" + (runtime.root / "include").string(),
                 "-I" + (runtime.root / "include/cccl").string()};
  for (const std::string& flag : runtime.nvcc_flags) {
    if (flag.starts_with("-D__CUDA_NO_")) flags.push_back(flag);
  }
  if (runtime.code == CodeKind::kPtx) flags.push_back("-lineinfo");
  return flags;
}

Status precompile(const CudaRuntime& runtime, const CudaFacade& facade, const fs::path& folder) {
  const fs::path header = folder / kHeader;
  MC_TRY_VOID(write_file_atomically(header, kWithBinding + runtime.cxx_prelude), "header");
  Flags argv = {runtime.compiler.string()};
  append(argv, facade.cxx_flags);
  append(argv, {"-x", "c++-header", header.string(), "-o", header.string() + ".gch"});
  MC_TRY_VOID(run_tool(argv), "precompile a header");
  return ok();
}

Status list_names(const CudaRuntime& runtime, const CudaFacade& facade, const fs::path& folder) {
  MC_TRY(const std::string full,
         preprocessed(runtime, runtime.cxx_flags,
                      runtime.cxx_prelude + runtime.cuda_prelude +
                          "#include <cuda_fp16.h>\n"
                          "#include <cuda_bf16.h>\n"),
         "facade");
  MC_TRY(const std::string thin,
         preprocessed(runtime, facade.cxx_flags,
                      kWithBinding + runtime.cxx_prelude + "#include <cuda_runtime.h>\n"),
         "facade");
  return write_missing_names(full, thin, folder / kMissing);
}

// A hash of everything that determines the output of the quick compiler.
Result<std::string> fingerprint_of(const QuickCompiler& quick) {
  MC_TRY(const std::string program,
         hash_of_files(quick.program.parent_path(), {quick.program.filename()}), "facade");
  return content_hash(
      {kQuickVersion, quick.compiler.filename().native(), program, joined(quick.device_flags)});
}

}  // namespace

Status add_facade(CudaRuntime& runtime, const PyTorch& pytorch, const Layout& layout,
                  const Progress& progress) {
  const fs::path folder = fs::weakly_canonical(layout.share("device/facade"));
  MC_TRY(const std::string headers, hash_of_files(folder, {"include", "bind", "device"}), "facade");
  const Flags includes =
      as_include_flags({folder / "include", folder / "bind", runtime.root / "include"});
  CudaFacade facade;
  facade.nvcc_flags = nvcc_flags(includes, runtime);
  facade.cxx_flags = cxx_flags(includes);
  facade.link_flags = cudart_flags(runtime.root);
  // PyTorch's libraries export functions with the same names for objects of another layout
  // (c10::cuda::CUDAStream); these must not replace the facade's.
  facade.link_flags.push_back("-Wl,-Bsymbolic");
  // Timed code is compiled by nvcc: NVRTC's code has 64-bit addresses for shared memory.
  facade.quick = runtime.code == CodeKind::kMachine
                     ? quick_compiler(layout, runtime.nvcc)
                     : find_quick_compiler(layout, runtime.root, pytorch.root, runtime.release);

  const Once once{"facade",
                  content_hash({kNamesVersion, runtime.fingerprint, pytorch.root.string(), headers,
                                joined(facade.cxx_flags)}),
                  "reading the names in PyTorch's headers (once)"};
  MC_TRY(const fs::path made,
         make_once(once, progress,
                   [&](const fs::path& made_in) -> Status {
                     MC_TRY_VOID(list_names(runtime, facade, made_in), "facade");
                     return precompile(runtime, facade, made_in);
                   }),
         "facade");
  MC_TRY(facade.names, Facade::read({folder / "include", folder / "bind"}, made / kMissing),
         "facade");
  runtime.visible.insert(runtime.visible.end(), {folder.string(), made.string()});
  runtime.fingerprint = content_hash({runtime.fingerprint, headers, joined(facade.link_flags)});
  if (facade.quick) {
    QuickCompiler& quick = *facade.quick;
    quick.header = made / kHeader;
    quick.device_flags = quick.is_nvcc() ? facade.nvcc_flags : nvrtc_flags(runtime);
    runtime.visible.insert(runtime.visible.end(),
                           {quick.program.string(), quick.compiler.string()});
    MC_TRY(const std::string own, fingerprint_of(quick), "facade");
    runtime.fingerprint = content_hash({runtime.fingerprint, own});
  }
  runtime.facade = std::move(facade);
  return ok();
}

std::string gencode_flag(std::string_view architecture) {
  const std::string name = with_features(architecture);
  return "-gencode=arch=compute_" + name + ",code=sm_" + name;
}

fs::path find_sanitizer(const fs::path& root) {
  std::vector<fs::path> folders = program_folders();
  if (!root.empty()) folders.insert(folders.begin(), {root / "bin", root / "compute-sanitizer"});
  for (const fs::path& folder : folders) {
    std::error_code failure;
    const fs::path program = fs::canonical(folder / "compute-sanitizer", failure);
    if (!failure && fs::is_regular_file(program, failure)) return program;
  }
  return {};
}

Result<CudaRuntime> find_cuda_runtime(const PyTorch& pytorch, const std::string& architecture,
                                      CodeKind code) {
  CudaRuntime runtime;
  runtime.architecture = architecture;
  runtime.code = code;
  MC_TRY(runtime.nvcc, find_nvcc(pytorch), "CUDA backend");
  MC_TRY(runtime.compiler, find_program("g++"), "CUDA backend");
  MC_TRY(runtime.nm, find_program("nm"), "CUDA backend");
  MC_TRY(const std::string nvcc_version, run_tool({runtime.nvcc.string(), "--version"}), "nvcc");
  MC_TRY(const std::string compiler_version,
         run_tool({runtime.compiler.string(), "-dumpfullversion", "-dumpmachine"}), "g++");
  MC_TRY_VOID(check_fit(pytorch, nvcc_version), "CUDA backend");
  MC_TRY_VOID(check_architecture(runtime.nvcc, architecture), "CUDA backend");
  runtime.root = runtime.nvcc.parent_path().parent_path();
  runtime.release = release_of_nvcc(nvcc_version);

  runtime.code_flags = code_flags(architecture, code);
  const Flags includes = include_flags(pytorch, runtime.root);
  runtime.cxx_flags = cxx_flags(includes);
  runtime.nvcc_flags = nvcc_flags(includes, runtime);
  runtime.link_flags = link_flags(pytorch, runtime.root);
  // The headers that load_inline adds unless it gets no_implicit_headers; load() adds none, but
  // repeating them does no harm.
  runtime.cxx_prelude = "#include <torch/extension.h>\n";
  runtime.cuda_prelude = "#include <torch/types.h>\n#include <cuda.h>\n#include <cuda_runtime.h>\n";
  runtime.visible = {runtime.root.string(), pytorch.root.string(), pytorch.python_include.string()};
  runtime.fingerprint =
      content_hash({"cuda", nvcc_version, compiler_version, pytorch.version, architecture,
                    joined(runtime.nvcc_flags), joined(runtime.cxx_flags),
                    joined(runtime.link_flags), runtime.cxx_prelude, runtime.cuda_prelude});
  return runtime;
}

}  // namespace mc::compile
