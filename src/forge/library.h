// SPDX-License-Identifier: Apache-2.0
//
// Library: the operators and templates from which the forge creates tasks and kernels, read from
// the data files.
#ifndef MC_FORGE_LIBRARY_H_
#define MC_FORGE_LIBRARY_H_

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "forge/operators.h"
#include "forge/templates.h"

namespace mc::forge {

struct Library {
  std::vector<Operator> operators;
  TemplateLibrary kernels;

  std::set<std::string> families() const;
  const Operator* find(std::string_view name) const;  // The operator of this name, or null.
};

// Reads <folder>/operators and <folder>/templates.  kInvalidInput names the invalid file.
Result<Library> load_library(const std::filesystem::path& folder);

}  // namespace mc::forge

#endif  // MC_FORGE_LIBRARY_H_
