// SPDX-License-Identifier: Apache-2.0
//
// The connections between the files of one run: a name stays as it is in a file if that file, or
// one that it includes, directly or through others, defines the name.  A file of the same run that
// is not included has no influence, so that one header with names of CUDA does not keep these names
// everywhere.
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
