// SPDX-License-Identifier: Apache-2.0
#include "compile/aten_library.h"

#include "compile/tool.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSourceMax = 1 << 20;
constexpr const char* kSources[] = {"shim_record.cc", "shim_guard.cc"};

}  // namespace

Result<fs::path> prepare_aten_library(const PyTorch& pytorch, const Layout& layout,
                                      const Progress& progress) {
  const fs::path emu = fs::weakly_canonical(layout.share("emu"));
  std::vector<std::string> sources;
  std::string texts;
  for (const char* name : kSources) {
    sources.push_back((emu / "torch" / name).string());
    MC_TRY(const std::string text, read_file(sources.back(), kSourceMax), "ATen library");
    texts += text + '\0';
  }
  const fs::path home = cache_directory() / "aten";
  const std::string key = content_hash({texts, pytorch.version, pytorch.root.string()});
  const fs::path library = home / (key.substr(0, 32) + ".so");
  std::error_code failure;
  if (fs::exists(library, failure)) return library;
  progress("building the ATen library for PyTorch " + pytorch.version + " (once)");
  MC_TRY(const TemporaryDirectory work, TemporaryDirectory::create_in(home, "work"), "ATen");
  const fs::path built = work.path() / "aten.so";
  std::vector<std::string> argv = {"g++", "-std=c++17",       "-O2", "-fPIC", "-shared",
                                   "-w",  "-I" + emu.string()};
  for (const fs::path& include : pytorch.include_dirs()) argv.push_back("-I" + include.string());
  argv.insert(argv.end(), sources.begin(), sources.end());
  argv.insert(argv.end(), {"-o", built.string(), "-L" + (pytorch.root / "lib").string(),
                           "-ltorch_cpu", "-lc10"});
  MC_TRY_VOID(run_tool(argv), "build the ATen library");
  fs::rename(built, library, failure);
  if (failure) return Error{ErrorCode::kIo, "cannot publish " + library.string()};
  return library;
}

}  // namespace mc::compile
