// SPDX-License-Identifier: Apache-2.0
#include "core/layout.h"

#include <cstdlib>

namespace mc {

namespace fs = std::filesystem;

Result<Layout> find_layout() {
  std::error_code failure;
  fs::path prefix;
  if (const char* given = std::getenv("MC_PREFIX")) {
    prefix = given;
  } else {
    prefix = fs::read_symlink("/proc/self/exe", failure).parent_path().parent_path();
  }
  const Layout layout{prefix};
  if (!fs::exists(layout.share("python/harness"), failure)) {
    return Error{ErrorCode::kNotFound, "no share/musacoder/python/harness under " +
                                           prefix.string() +
                                           ": run the installed program, or set MC_PREFIX"};
  }
  return layout;
}

}  // namespace mc
