// SPDX-License-Identifier: Apache-2.0
//
// Once: files that are built from the installed PyTorch when they are first needed, and kept in the
// cache:
//
//   <cache>/<kind>/<hash of everything that the files depend on>/
//
// The files are built in a temporary folder beside it, which is then renamed.  A lock makes a
// second process wait instead of building the same.  A process that is interrupted or killed leaves
// no partial folder.  Of each kind the newest kOnceKept folders are kept, so that former versions
// of PyTorch and toolkits do not fill the disk.
#ifndef MC_COMPILE_ONCE_H_
#define MC_COMPILE_ONCE_H_

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "compile/pytorch.h"
#include "core/result.h"

namespace mc::compile {

inline constexpr size_t kOnceKept = 4;

struct Once {
  std::string kind;  // "runtimes"
  std::string key;   // A content_hash.
  std::string what;  // A progress message: "preparing the CPU backend (a minute, once)".

  std::filesystem::path folder() const;
};

// The folder.  Where it does not exist, `make` fills a temporary one, which is then renamed.  Where
// `make` fails, nothing is kept.
Result<std::filesystem::path> make_once(
    const Once& once, const Progress& progress,
    const std::function<Status(const std::filesystem::path& folder)>& make);

// The hash of the names and contents of all files at `paths` below `root`; folders are included
// with everything in them.
Result<std::string> hash_of_files(const std::filesystem::path& root,
                                  const std::vector<std::filesystem::path>& paths);

}  // namespace mc::compile

#endif  // MC_COMPILE_ONCE_H_
