// SPDX-License-Identifier: Apache-2.0
#include "compile/device_library.h"

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
constexpr const char* kSources[] = {"arena.cc", "gate.cc", "trace.cc", "vendor.cc"};
constexpr const char* kHeader = "mc_device.h";
constexpr const char* kCupti = "libcupti.so.13";

// The CUPTI that PyTorch loads comes first: a second one in a process would trace nothing.
Result<fs::path> find_cupti(const PyTorch& pytorch, const fs::path& toolkit) {
  const fs::path packages = pytorch.root.parent_path() / "nvidia";
  for (const fs::path& folder :
       {packages / "cu13/lib", packages / "cuda_cupti/lib", toolkit / "lib64",
        toolkit / "extras/CUPTI/lib64", toolkit / "targets/x86_64-linux/lib"}) {
    std::error_code failure;
    if (fs::exists(folder / kCupti, failure)) return folder / kCupti;
  }
  return Error{ErrorCode::kUnavailable, std::string(kCupti) +
                                            " is missing: it comes with PyTorch for CUDA 13 "
                                            "(nvidia-cuda-cupti) and with the toolkit"};
}

std::vector<std::string> command_for(const PyTorch& pytorch, const fs::path& toolkit,
                                     const fs::path& sources, const fs::path& cupti) {
  std::vector<std::string> argv = {"g++",   "-std=c++20", "-O2",
                                   "-fPIC", "-shared",    "-I" + sources.string()};
  for (const fs::path& folder : {toolkit / "include", toolkit / "extras/CUPTI/include",
                                 pytorch.root.parent_path() / "nvidia/cu13/include"}) {
    argv.push_back("-isystem" + folder.string());
  }
  for (const char* source : kSources) argv.push_back((sources / source).string());
  argv.insert(argv.end(), {"-L" + (toolkit / "lib64/stubs").string(), "-lcuda", cupti.string()});
  return argv;
}

}  // namespace

Result<fs::path> prepare_device_library(const PyTorch& pytorch, const fs::path& toolkit,
                                        const Layout& layout, const Progress& progress) {
  const fs::path sources = fs::weakly_canonical(layout.share("device"));
  MC_TRY(const fs::path cupti, find_cupti(pytorch, toolkit), "device library");
  std::vector<std::string> argv = command_for(pytorch, toolkit, sources, cupti);
  std::string identity = pytorch.version;
  for (const std::string& word : argv) identity += '\n' + word;
  std::vector<std::string> files(std::begin(kSources), std::end(kSources));
  files.emplace_back(kHeader);
  for (const std::string& file : files) {
    MC_TRY(const std::string text, read_file(sources / file, kSourceMax), "device library");
    identity += '\n' + text;
  }
  const fs::path home = cache_directory() / "device";
  const fs::path library = home / ("mc_device_" + content_hash({identity}).substr(0, 32) + ".so");
  std::error_code failure;
  if (fs::exists(library, failure)) return library;
  progress("building the device library (once)");
  MC_TRY(const TemporaryDirectory work, TemporaryDirectory::create_in(home, "work"), "device");
  const fs::path built = work.path() / "device.so";
  argv.insert(argv.end(), {"-o", built.string()});
  MC_TRY_VOID(run_tool(argv), "build the device library");
  fs::rename(built, library, failure);
  if (failure) return Error{ErrorCode::kIo, "cannot publish " + library.string()};
  return library;
}

}  // namespace mc::compile
