// SPDX-License-Identifier: Apache-2.0
#include "musify/project.h"

#include <vector>

#include "musify/apply_rules.h"

namespace mc::musify {

SourceFacts facts_of(std::string_view text, Language language, const Rules& rules) {
  const std::vector<Unit> units = units_of(text, language, rules.cpp_markers);
  SourceFacts facts{names_defined_in(units), {}};
  for (const Unit& unit : units) {
    for (const Word& word : unit.words) {
      if (word.kind == Word::Kind::kHeader) facts.includes.insert(file_name(word.text));
    }
  }
  return facts;
}

void ProjectIndex::add(const std::string& file, const SourceFacts& facts) {
  SourceFacts& known = files_[file];
  known.names.insert(facts.names.begin(), facts.names.end());
  known.includes.insert(facts.includes.begin(), facts.includes.end());
}

Project ProjectIndex::project_of(const SourceFacts& facts) const {
  Project project;
  for (const auto& [file, ignored] : files_) project.files.insert(file);
  std::set<std::string, std::less<>> seen;
  std::vector<std::string> open(facts.includes.begin(), facts.includes.end());
  while (!open.empty()) {
    const std::string file = std::move(open.back());
    open.pop_back();
    const auto found = files_.find(file);
    if (found == files_.end() || !seen.insert(file).second) continue;
    project.names.insert(found->second.names.begin(), found->second.names.end());
    open.insert(open.end(), found->second.includes.begin(), found->second.includes.end());
  }
  return project;
}

}  // namespace mc::musify
