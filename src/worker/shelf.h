// SPDX-License-Identifier: Apache-2.0
//
// ArtifactMount: a directory of the host in which one candidate process finds the libraries that
// were compiled for its candidate, and nothing else.
//
// A candidate process may be in its sandbox before anybody knows its candidate, so it is shown an
// empty directory, read-only; what is put there later has the paths that path_on_shelf() tells.
#ifndef MC_WORKER_SHELF_H_
#define MC_WORKER_SHELF_H_

#include <cstddef>
#include <filesystem>
#include <vector>

#include "core/file.h"
#include "core/result.h"

namespace mc::worker {

// The path of the library of this number, as a candidate process sees it; the file keeps its name,
// by which findings and traces tell of it.
std::filesystem::path path_on_shelf(size_t index, const std::filesystem::path& library);

class ArtifactMount {
 public:
  static Result<ArtifactMount> create();
  // Puts links (copies, from another file system) there.  To be called once.
  Status put(const std::vector<std::filesystem::path>& libraries) const;
  const std::filesystem::path& path() const { return directory_.path(); }

 private:
  explicit ArtifactMount(TemporaryDirectory directory) : directory_(std::move(directory)) {}
  TemporaryDirectory directory_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_SHELF_H_
