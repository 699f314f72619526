// SPDX-License-Identifier: Apache-2.0
//
// The includes between the files of one run.  A name is not changed in a file if that file, or a
// file that it includes directly or indirectly, defines the name.  Files that are not included have
// no influence; otherwise, one header with names of CUDA would keep these names in all files.
#ifndef MC_MUSIFY_PROJECT_H_
#define MC_MUSIFY_PROJECT_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "musify/port.h"
#include "musify/rules.h"
#include "musify/words.h"

namespace mc::musify {

struct SourceFacts {
  std::set<std::string, std::less<>> names;     // Names that the source defines.
  std::set<std::string, std::less<>> includes;  // File names, without folders.
};

SourceFacts facts_of(std::string_view text, Language language, const Rules& rules);

class ProjectIndex {
 public:
  // `file` is a file name without folders; several files may have it.
  void add(const std::string& file, const SourceFacts& facts);

  Project project_of(const SourceFacts& facts) const;

 private:
  std::map<std::string, SourceFacts, std::less<>> files_;
};

}  // namespace mc::musify

#endif  // MC_MUSIFY_PROJECT_H_
