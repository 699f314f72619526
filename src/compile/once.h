// SPDX-License-Identifier: Apache-2.0
//
// Once: what is made from the installed PyTorch when it is first needed, and kept in the cache:
//
//   <cache>/<kind>/<hash of all that decides what is in it>/
//
// It is made in a folder beside that and renamed, under a lock that makes a second process wait
// instead of making the same.  A process that is interrupted or killed leaves nothing of it.  Of a
// kind the newest kOnceKept stay, so that former PyTorches and toolkits do not fill the disk.
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
  std::string what;  // For a person who waits: "preparing the CPU backend (a minute, once)".

  std::filesystem::path folder() const;
};

// The folder; `make` fills another one, which becomes it.  Where that fails, nothing is kept.
Result<std::filesystem::path> make_once(
    const Once& once, const Progress& progress,
    const std::function<Status(const std::filesystem::path& folder)>& make);

// The hash of all files that `paths` name, below `root`, folders with all in them: names and
// contents.
Result<std::string> hash_of_files(const std::filesystem::path& root,
                                  const std::vector<std::filesystem::path>& paths);

}  // namespace mc::compile

#endif  // MC_COMPILE_ONCE_H_
