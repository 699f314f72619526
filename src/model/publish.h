// SPDX-License-Identifier: Apache-2.0
//
// Atomic writes: a file or folder is complete or absent, also after a power failure.
#ifndef MC_MODEL_PUBLISH_H_
#define MC_MODEL_PUBLISH_H_

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "core/result.h"

namespace mc::model {

// Writes the parts in order and waits until they are on disk.  After a failure (a full disk), the
// file does not exist.
Status write_file_synced(const std::filesystem::path& path,
                         std::span<const std::string_view> parts);

// Calls `write` with an empty folder beside `path`, then renames that folder to `path`, replacing
// what was there.  A failure leaves `path` unchanged.
Status publish_folder(const std::filesystem::path& path,
                      const std::function<Status(const std::filesystem::path&)>& write);

}  // namespace mc::model

#endif  // MC_MODEL_PUBLISH_H_
