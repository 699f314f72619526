// SPDX-License-Identifier: Apache-2.0
//
// ArtifactMount: a directory of the host in which one candidate process finds the libraries that
// were compiled for its candidate, and nothing else.
//
// A candidate process may be in its sandbox before its candidate is known.  Therefore an empty
// directory is mounted read-only; libraries that are added later have the paths of mounted_path().
#ifndef MC_WORKER_ARTIFACT_MOUNT_H_
#define MC_WORKER_ARTIFACT_MOUNT_H_

#include <cstddef>
#include <filesystem>
#include <vector>

#include "core/file.h"
#include "core/result.h"

namespace mc::worker {

// The path of the library with this index in a candidate process's view.  The file keeps its name,
// which appears in findings and traces.
std::filesystem::path mounted_path(size_t index, const std::filesystem::path& library);

class ArtifactMount {
 public:
  static Result<ArtifactMount> create();
  // Adds links (copies, from another file system).  Called once.
  Status put(const std::vector<std::filesystem::path>& libraries) const;
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  explicit ArtifactMount(TemporaryDirectory directory) : directory_(std::move(directory)) {}
  TemporaryDirectory directory_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_ARTIFACT_MOUNT_H_
