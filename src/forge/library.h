// SPDX-License-Identifier: Apache-2.0
//
// Library: what the forge makes tasks and kernels of, read from the data files.
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
  const Operator* find(std::string_view name) const;  // Null where there is none of that name.
};

// From <folder>/operators and <folder>/templates.  kInvalidInput with the file that is wrong.
Result<Library> load_library(const std::filesystem::path& folder);

}  // namespace mc::forge

#endif  // MC_FORGE_LIBRARY_H_
