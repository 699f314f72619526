// SPDX-License-Identifier: Apache-2.0
//
// Removes the current folder from the folders from which our Python processes import: it may be a
// repository of a stranger.  Each Python is started with -P.  That does not change $PYTHONPATH, in
// which an empty entry also means the current folder.
#ifndef MC_CLI_PYTHON_PATH_H_
#define MC_CLI_PYTHON_PATH_H_

#include <cstdlib>
#include <sstream>
#include <string>

namespace mc::cli {

// The path without empty entries: ":/opt/lib:." gives "/opt/lib".
inline std::string without_current_folder(const std::string& python_path) {
  std::string kept;
  std::istringstream entries(python_path);
  for (std::string entry; std::getline(entries, entry, ':');) {
    if (entry.empty() || entry == ".") continue;
    kept += (kept.empty() ? "" : ":") + entry;
  }
  return kept;
}

// Changes $PYTHONPATH of this process and of its future children.  Not thread-safe.
inline void leave_current_folder_out_of_python_path() {
  const char* python_path = std::getenv("PYTHONPATH");
  if (python_path == nullptr) return;
  ::setenv("PYTHONPATH", without_current_folder(python_path).c_str(), /*overwrite=*/1);
}

}  // namespace mc::cli

#endif  // MC_CLI_PYTHON_PATH_H_
