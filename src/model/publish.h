// SPDX-License-Identifier: Apache-2.0
//
// Files and folders that are there whole or not at all, also after the machine lost power.
#ifndef MC_MODEL_PUBLISH_H_
#define MC_MODEL_PUBLISH_H_

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "core/result.h"

namespace mc::model {

// Writes the parts one after another and waits until they are on the disk.  A failure (a full disk)
// leaves no file.
Status write_file_synced(const std::filesystem::path& path,
                         std::span<const std::string_view> parts);

// Calls `write` with an empty folder beside `path`, then gives it that name, in place of what had
// it.  A failure leaves `path` as it was.
Status publish_folder(const std::filesystem::path& path,
                      const std::function<Status(const std::filesystem::path&)>& write);

}  // namespace mc::model

#endif  // MC_MODEL_PUBLISH_H_
