// SPDX-License-Identifier: Apache-2.0
//
// The source files of one run, and the paths of their ports.
#ifndef MC_MUSIFY_TREE_H_
#define MC_MUSIFY_TREE_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "musify/port.h"
#include "musify/rules.h"

namespace mc::musify {

inline constexpr std::size_t kSourceBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kSourcesMax = 100'000;

struct Source {
  std::filesystem::path path;      // The path that the user named, or one below it.
  std::filesystem::path relative;  // The path of its port below the output folder.
  Language language = Language::kCpp;
};

// The sources that the paths name: files, and all sources in folders, ordered by name.  Hidden
// files and folders, symbolic links and files of other kinds are left out. kNotFound or
// kInvalidInput name the path that is not a source.
Result<std::vector<Source>> find_sources(const std::vector<std::string>& paths, const Rules& rules);

// Removes and returns the sources whose port already exists as a source in the same folder: `k.cu`,
// if there is `k.mu`.
std::vector<Source> take_ported(std::vector<Source>& sources);

// kInvalidInput if a port would overwrite a source, or if two ports would have the same path.
Status check_outputs(const std::vector<Source>& sources, const std::filesystem::path& folder);

}  // namespace mc::musify

#endif  // MC_MUSIFY_TREE_H_
