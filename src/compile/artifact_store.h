// SPDX-License-Identifier: Apache-2.0
//
// ArtifactStore: the artifacts of one toolchain on disk, for any number of threads and processes.
// Example:
//   const ArtifactStore::Slot slot = store.slot_of(extension, flags);
//   const auto turn = store.take_turn(slot, wait_max);
//   if (auto artifact = store.find(slot, extension)) return *artifact;
//   MC_TRY(const auto work, store.begin(), "artifacts");
//   ... build slot.module in work.path(), fill an Artifact ...
//   return store.publish(work, slot, extension, artifact);
//
// The key is a hash of the toolchain's fingerprint, the relevant flags and the sources.  The
// extension's name is not a part of it where only Python uses the name (is_name_free in
// extension.h).  Sources that differ only in comments or white space are two artifacts: these were
// 2 of 411 answers of a leaderboard, and none of 14,000 by models of our own.  Failures are not
// stored, because the lines in their diagnostics are those of the failed text.
//
// Below `root`:
//   <hash>/        an artifact: <module>.so, manifest.json, the sources. It is built as work-* and
//                  renamed, so that readers see all of it or nothing
//   <hash>.lock    held (flock) by the process that builds the artifact
//   work-*         held by the process that builds in it
//   old-*          an artifact that is being removed
// Locks end with their process, so no process waits for the remains of a killed one; sweep()
// removes them.  Builds would be correct without the locks, but repeated.
#ifndef MC_COMPILE_ARTIFACT_STORE_H_
#define MC_COMPILE_ARTIFACT_STORE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/toolchain.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/result.h"

namespace mc::compile {

inline constexpr uint64_t kArtifactBytesMax = uint64_t{4} << 30;

// $MC_CACHE_BYTES, a number of bytes from 1 MiB on; kArtifactBytesMax where the variable is not
// set.  kInvalidInput for any other value.
Result<uint64_t> artifact_bytes_max();

class ArtifactStore {
 public:
  // `bytes_max` bounds all artifacts below `root`, of any toolchain.
  ArtifactStore(std::filesystem::path root, std::string fingerprint,
                uint64_t bytes_max = kArtifactBytesMax)
      : root_(std::move(root)), fingerprint_(std::move(fingerprint)), bytes_max_(bytes_max) {}

  struct Slot {
    std::filesystem::path home;
    // The Python module's name in the compilation: the extension's own name where the sources
    // depend on it, else a name made from the key.
    std::string module;
  };
  Slot slot_of(const Extension& extension, const std::vector<std::string>& flags) const;

  // The right to build a slot.  The first of all threads and processes that take it gets it; the
  // others wait until it has ended, for at most `wait_max`, and then continue without it, so that
  // they do not fail one after the other where the first one failed.  The turn ends with the last
  // copy of the result.
  using Turn = std::shared_ptr<const void>;
  Turn take_turn(const Slot& slot, std::chrono::duration<double> wait_max) const;

  // The artifact of the slot; nothing when it does not exist or is damaged.  It is not removed
  // while a copy of the artifact's `lease` exists.
  std::optional<Artifact> find(const Slot& slot, const Extension& extension) const;

  // A directory to build in, which is removed if it is not published.
  class Work {
   public:
    const std::filesystem::path& path() const { return directory_.path(); }

   private:
    friend class ArtifactStore;
    Work(TemporaryDirectory directory, Fd lock)
        : directory_(std::move(directory)), lock_(std::move(lock)) {}
    TemporaryDirectory directory_;
    Fd lock_;
  };
  Result<Work> begin() const;

  // Writes the manifest and renames the directory to the slot's path.  Where another process has
  // published the slot first, its artifact is returned: nvcc gives a kernel in an anonymous
  // namespace a different name in each compilation.  Calls sweep() the first time, and whenever
  // this store has published 1/32 of `bytes_max`.
  Result<Artifact> publish(const Work& work, const Slot& slot, const Extension& extension,
                           const Artifact& artifact);

  // Removes what killed processes left.  If the store exceeds `bytes_max`, removes the least
  // recently used artifacts without a lease until it has at most 7/8 of `bytes_max`.
  void sweep() const;

 private:
  // Constant after construction.
  std::filesystem::path root_;
  std::string fingerprint_;  // The fingerprint of the toolchain.
  uint64_t bytes_max_;

  std::atomic<uint64_t> bytes_published_ = 0;
  // The value of bytes_published_ that triggers the next sweep.
  std::atomic<uint64_t> bytes_at_sweep_ = 0;
};

// The path of the shared object in a directory of the store.
std::filesystem::path library_in(const std::filesystem::path& directory, const std::string& module);

}  // namespace mc::compile

#endif  // MC_COMPILE_ARTIFACT_STORE_H_
