// SPDX-License-Identifier: Apache-2.0
//
// Toolchain: compiles one recorded extension into an artifact, outside any device process.
//
// An artifact is a directory of the cache, named by the content hash of everything that determines
// it (the sources, the flags, the toolchain): <module>.so, which Python imports, and manifest.json
// (artifact_store.h).  A repeated compilation returns the same artifact at once; of several threads
// and processes that request the same artifact, only the first one compiles it.  Thread-safe;
// several processes may share one cache.
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
#include "task/outcome.h"

namespace mc::compile {

// The undefined symbols of a library, mangled, without versions.  Empty where they cannot be read
// or are too many: the rules on symbols then count as broken.
using Symbols = std::optional<std::vector<std::string>>;
inline constexpr size_t kSymbolsMax = 20'000;

struct Artifact {
  std::string key = {};     // The extension's key, by which the candidate process finds it.
  std::string name = {};    // The extension's name, which the imported module gets.
  std::string module = {};  // The module's name: the library has PyInit_<module>.
  std::filesystem::path library = {};  // The shared object.
  Symbols undefined_symbols = {};
  std::vector<KernelResources> kernels = {};  // The kernels in the library; none for the CPU.
  std::string full_headers = {};              // The member of Compilation.
  bool cached = false;
  // The cache keeps the files while a copy of this pointer exists: all copies of the artifact own
  // it.
  std::shared_ptr<const void> lease = {};
};

using Compiled = std::variant<Artifact, task::CompileFailed, task::Unsupported, task::TimedOut,
                              task::OutOfMemory>;

struct Compilation {
  Compiled outcome;
  // The reason why PyTorch's full headers were used: a name that the facade lacks (facade.h); ""
  // with the facade.
  std::string full_headers;
  double cpu_s = 0;  // The user and system time of the compilers; 0 for an artifact from the cache.
};

struct CompileLimits {
  // The limit of each compiler's processor time, which does not depend on the load of the machine.
  double cpu_s = 120;
  int64_t memory_bytes = int64_t{4} << 30;
  bool allow_weak_sandbox = false;
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  // Compiles.  An Error means that the toolchain itself failed (kUnavailable), never a fault of the
  // source.
  virtual Result<Compilation> compile(const Extension& extension, const LocationMapper& mapper,
                                      const CompileLimits& limits) = 0;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_TOOLCHAIN_H_
