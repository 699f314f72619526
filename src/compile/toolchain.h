// SPDX-License-Identifier: Apache-2.0
//
// Toolchain: turns one recorded extension into an artifact, outside any device process.
//
// An artifact is a directory of the cache, named by the content hash of all that decided it (the
// sources, the flags, the toolchain): <module>.so, which Python imports, and manifest.json
// (artifact_store.h).  Compiling the same again returns the same artifact at once; of several
// threads and processes that want the same only the first one compiles it.  Thread-safe; several
// processes may share one cache.
#ifndef MC_COMPILE_TOOLCHAIN_H_
#define MC_COMPILE_TOOLCHAIN_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compile/extension.h"
#include "compile/kernel_resources.h"
#include "core/result.h"
#include "task/verdict.h"

namespace mc::compile {

// Symbols that a library wants from others, mangled, without versions.  Nothing where they cannot
// be read, or are more than anybody needs: rules that cannot be asked are broken.
using Symbols = std::optional<std::vector<std::string>>;
inline constexpr size_t kSymbolsMax = 20'000;

struct Artifact {
  std::string key = {};     // The extension's key, by which the candidate process looks it up.
  std::string name = {};    // The extension's, which the Python module gets once it is imported.
  std::string module = {};  // The name of the module: the library has PyInit_<module>.
  std::filesystem::path library = {};  // The shared object.
  Symbols undefined_symbols = {};
  std::vector<KernelResources> kernels = {};  // That it holds for the device; none for the CPU.
  std::string full_headers = {};              // The member of Compilation.
  bool cached = false;
  // The cache keeps the files while a copy of this lives: all copies of the artifact own it.
  std::shared_ptr<const void> lease = {};
};

using Compiled = std::variant<Artifact, task::CompileFailed, task::Unsupported, task::TimedOut,
                              task::OutOfMemory>;

struct Compilation {
  Compiled outcome;
  // Why PyTorch's full headers were read: what the facade lacks (facade.h); "" where it served.
  std::string full_headers;
  double cpu_s = 0;  // User and system time of the compilers; 0 of what was in the cache.
};

struct CompileLimits {
  // Processor time of each compiler: a busy machine makes no honest source late.
  double cpu_s = 120;
  int64_t memory_bytes = int64_t{4} << 30;
  bool allow_weak_sandbox = false;
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  // An Error says that the toolchain itself failed (kUnavailable), never that the source is bad.
  virtual Result<Compilation> compile(const Extension& extension, const LocationMapper& mapper,
                                      const CompileLimits& limits) = 0;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_TOOLCHAIN_H_
