// SPDX-License-Identifier: Apache-2.0
//
// ArtifactStore: the artifacts of one toolchain on disk.  An artifact's directory is built under
// another name and renamed into place, so that readers see all or nothing.
//
//   const ArtifactStore store{artifacts, runtime.fingerprint};
//   const auto home = store.home_of(extension, flags);
//   if (auto artifact = store.find(home, extension)) return *artifact;
//   ... build in a TemporaryDirectory below `root`, fill an Artifact ...
//   return store.publish(work.path(), home, extension, artifact);
#ifndef MC_COMPILE_ARTIFACT_STORE_H_
#define MC_COMPILE_ARTIFACT_STORE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compile/toolchain.h"
#include "core/result.h"

namespace mc::compile {

struct ArtifactStore {
  std::filesystem::path root;
  std::string fingerprint;  // Of the toolchain.

  // Named by a hash of the fingerprint, the extension's sources and those `flags` that matter.
  std::filesystem::path home_of(const Extension& extension,
                                const std::vector<std::string>& flags) const;

  // What stands in `home`; none when it is not there or damaged.
  std::optional<Artifact> find(const std::filesystem::path& home, const Extension& extension) const;

  // Writes the manifest and renames `work` to `home`.  Where somebody else was first, theirs is
  // what is returned: nvcc gives a kernel in an anonymous namespace another name each time.
  Result<Artifact> publish(const std::filesystem::path& work, const std::filesystem::path& home,
                           const Extension& extension, const Artifact& artifact) const;
};

// The shared object in a directory of the store.
std::filesystem::path library_in(const std::filesystem::path& directory,
                                 const Extension& extension);

}  // namespace mc::compile

#endif  // MC_COMPILE_ARTIFACT_STORE_H_
