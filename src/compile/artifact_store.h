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
// The key is a hash of the toolchain's fingerprint, the flags that matter and the sources.  The
// extension's name makes no difference where only Python sees it (is_name_free in extension.h).
// Sources that differ in comments or white space alone are two artifacts: they were 2 of 411
// answers of a leaderboard, and none of 14,000 by models of our own. Failures are not kept: what
// their diagnostics tell of lines is the failed text's own.
//
// Below `root`:
//   <hash>/        an artifact: <module>.so, manifest.json, the sources.  Built as work-* and
//                  renamed into place, so that readers see all or nothing
//   <hash>.lock    held (flock) by who builds that
//   work-*         held by who builds in it
//   old-*          on its way out
// Locks end with their process, so nothing that a killed one leaves is waited for; sweep() removes
// it.  Builds are right without the locks, too, only more.
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

// $MC_CACHE_BYTES, a number of bytes from 1 MiB on; kArtifactBytesMax where it is not set.
// kInvalidInput where it is something else.
Result<uint64_t> artifact_bytes_max();

class ArtifactStore {
 public:
  // `bytes_max` is for all artifacts below `root`, whoever made them.
  ArtifactStore(std::filesystem::path root, std::string fingerprint,
                uint64_t bytes_max = kArtifactBytesMax)
      : root_(std::move(root)), fingerprint_(std::move(fingerprint)), bytes_max_(bytes_max) {}

  struct Slot {
    std::filesystem::path home;
    // The Python module's name for the compiler: the extension's own where the sources bind by it,
    // else one made of the key.
    std::string module;
  };
  Slot slot_of(const Extension& extension, const std::vector<std::string>& flags) const;

  // Lets one of all threads and processes that want a slot build it, while the others wait, for
  // `wait_max` at most.  These then go on at once: where the first one failed, they need not fail
  // one after the other.  The turn ends with the last copy of what is returned.
  using Turn = std::shared_ptr<const void>;
  Turn take_turn(const Slot& slot, std::chrono::duration<double> wait_max) const;

  // The artifact of the slot; none when it is not there or damaged.  It is not removed as long as a
  // copy of the artifact's `lease` lives.
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

  // Writes the manifest and renames the directory to the slot's home.  Where somebody else was
  // first, theirs is what is returned: nvcc gives a kernel in an anonymous namespace another name
  // each time.  Sweeps at first, and whenever this store has published 1/32 of `bytes_max`.
  Result<Artifact> publish(const Work& work, const Slot& slot, const Extension& extension,
                           const Artifact& artifact);

  // Removes what killed processes left and, where there is more than `bytes_max`, the artifacts
  // that were not used for longest, down to 7/8 of it.  What somebody holds a lease on stays.
  void sweep() const;

 private:
  // Constant after construction.
  std::filesystem::path root_;
  std::string fingerprint_;  // The fingerprint of the toolchain.
  uint64_t bytes_max_;

  std::atomic<uint64_t> bytes_published_ = 0;
  std::atomic<uint64_t> bytes_at_sweep_ = 0;  // The bytes of those, when it swept the next time.
};

// The shared object in a directory of the store.
std::filesystem::path library_in(const std::filesystem::path& directory, const std::string& module);

}  // namespace mc::compile

#endif  // MC_COMPILE_ARTIFACT_STORE_H_
