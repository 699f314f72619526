// SPDX-License-Identifier: Apache-2.0
//
// Layout: where the program's own files are.
//
// A build tree and an installed folder look alike: <prefix>/bin/musacoder, <prefix>/lib/*.so,
// <prefix>/share/musacoder/{data,device,python}.  The prefix is found
// from the running program, so the folder can be moved.
#ifndef MC_CORE_LAYOUT_H_
#define MC_CORE_LAYOUT_H_

#include <filesystem>

#include "core/result.h"

namespace mc {

struct Layout {
  std::filesystem::path prefix;
  std::filesystem::path library(const char* name) const { return prefix / "lib" / name; }
  std::filesystem::path share(const char* name) const { return prefix / "share/musacoder" / name; }
};

// The layout below $MC_PREFIX or, without it, around the running program.  kNotFound when the
// program's files are not there.
Result<Layout> find_layout();

}  // namespace mc

#endif  // MC_CORE_LAYOUT_H_
