// SPDX-License-Identifier: Apache-2.0
#include "worker/artifact_mount.h"

#include <string>
#include <system_error>

#include "sandbox/profile.h"

namespace mc::worker {

namespace fs = std::filesystem;

namespace {

fs::path below(const fs::path& directory, size_t index, const fs::path& library) {
  return directory / std::to_string(index) / library.filename();
}

}  // namespace

fs::path mounted_path(size_t index, const fs::path& library) {
  return below(sandbox::kArtifactsPath, index, library);
}

Result<ArtifactMount> ArtifactMount::create() {
  MC_TRY(TemporaryDirectory directory,
         TemporaryDirectory::create_in(cache_directory() / "shelves", "artifacts"), "artifacts");
  return ArtifactMount(std::move(directory));
}

Status ArtifactMount::put(const std::vector<fs::path>& libraries) const {
  for (size_t i = 0; i < libraries.size(); ++i) {
    const fs::path target = below(path(), i, libraries[i]);
    std::error_code failure;
    fs::create_directory(target.parent_path(), failure);
    fs::create_hard_link(libraries[i], target, failure);
    if (!failure) continue;
    fs::copy_file(libraries[i], target, failure);
    if (failure) {
      return Error{ErrorCode::kIo, "cannot put " + libraries[i].string() + " to " +
                                       target.string() + ": " + failure.message()};
    }
  }
  return ok();
}

}  // namespace mc::worker
