// SPDX-License-Identifier: Apache-2.0
#include "compile/aten_library.h"

#include <iterator>
#include <string>
#include <vector>

#include "compile/tool.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSourceMax = 1 << 20;
constexpr const char* kSources[] = {"emu/torch/shim.cc", "emu/torch/shim_record.cc",
                                    "emu/torch/shim_guard.cc", "facade/runtime/tensors.cc",
                                    "facade/runtime/cuda.cc"};
constexpr const char* kHeaders[] = {"emu/torch/shim.h", "emu/torch/shim_guard.h",
                                    "facade/bind/mc_emu/bind_abi.h", "facade/include/mc_at/abi.h",
                                    "facade/include/mc_at/operators.h"};

std::vector<std::string> command_for(const PyTorch& pytorch, const fs::path& toolkit,
                                     const fs::path& share, const fs::path& built) {
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
  for (const char* source : kSources) argv.push_back((share / source).string());
  argv.insert(argv.end(),
              {"-o", built.string(), "-L" + (pytorch.root / "lib").string(), "-ltorch_python",
               "-ltorch_cuda", "-ltorch_cpu", "-ltorch", "-lc10_cuda", "-lc10"});
  return argv;
}

}  // namespace

Result<fs::path> prepare_aten_library(const PyTorch& pytorch, const fs::path& toolkit,
                                      const Layout& layout, const Progress& progress) {
  const fs::path share = fs::weakly_canonical(layout.share("emu")).parent_path();
  std::vector<std::string> files(std::begin(kSources), std::end(kSources));
  files.insert(files.end(), std::begin(kHeaders), std::end(kHeaders));
  std::string texts;
  for (const std::string& file : files) {
    MC_TRY(const std::string text, read_file(share / file, kSourceMax), "ATen library");
    texts += text + '\0';
  }
  const fs::path home = cache_directory() / "aten";
  const std::string key =
      content_hash({texts, pytorch.version, pytorch.root.string(), toolkit.string()});
  const fs::path library = home / (key.substr(0, 32) + ".so");
  std::error_code failure;
  if (fs::exists(library, failure)) return library;
  progress("building the ATen library for PyTorch " + pytorch.version + " (once)");
  MC_TRY(const TemporaryDirectory work, TemporaryDirectory::create_in(home, "work"), "ATen");
  const fs::path built = work.path() / "aten.so";
  MC_TRY_VOID(run_tool(command_for(pytorch, toolkit, share, built)), "build the ATen library");
  fs::rename(built, library, failure);
  if (failure) return Error{ErrorCode::kIo, "cannot publish " + library.string()};
  return library;
}

}  // namespace mc::compile
