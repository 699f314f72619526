// SPDX-License-Identifier: Apache-2.0
//
// Toolchain: turns one recorded extension into an artifact, outside any device process.
//
// An artifact is a directory of the cache, named by the content hash of all that decided it (the
// sources, the flags, the toolchain): <name>.so, which Python imports, and manifest.json. Compiling
// the same again returns the same artifact at once; of several threads that want the same only the
// first one compiles it.  Thread-safe; several processes may share one cache.
#ifndef MC_COMPILE_TOOLCHAIN_H_
#define MC_COMPILE_TOOLCHAIN_H_

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "compile/extension.h"
#include "compile/kernel_resources.h"
#include "core/result.h"
#include "task/verdict.h"

namespace mc::compile {

struct Artifact {
  std::string key;                // The extension's key, by which the contestant looks it up.
  std::string module;             // Python module name.
  std::filesystem::path library;  // The shared object.
  std::vector<std::string> undefined_symbols;  // What it wants from others, mangled.
  std::vector<KernelResources> kernels;        // That it holds for the device; none for the CPU.
  bool cached = false;
};

using Compiled = std::variant<Artifact, task::CompileFailed, task::Unsupported, task::TimedOut,
                              task::OutOfMemory>;

struct CompileLimits {
  double wall_s = 120;
  int64_t memory_bytes = int64_t{4} << 30;
  bool allow_weak_sandbox = false;
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  // An Error says that the toolchain itself failed (kUnavailable), never that the source is bad.
  virtual Result<Compiled> compile(const Extension& extension, const PlaceMapper& mapper,
                                   const CompileLimits& limits) = 0;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_TOOLCHAIN_H_
