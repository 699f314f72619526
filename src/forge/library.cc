// SPDX-License-Identifier: Apache-2.0
#include "forge/library.h"

#include <algorithm>

namespace mc::forge {

std::set<std::string> Library::families() const {
  std::set<std::string> names;
  for (const Operator& op : operators) {
    names.insert(op.family);
    for (const Operator& gradient : op.gradients) names.insert(gradient.family);
  }
  return names;
}

const Operator* Library::find(std::string_view name) const {
  const auto found =
      std::ranges::find_if(operators, [&](const Operator& op) { return op.name == name; });
  return found == operators.end() ? nullptr : &*found;
}

Result<Library> load_library(const std::filesystem::path& folder) {
  Library library;
  MC_TRY(library.operators, load_operators(folder / "operators"), "operators");
  MC_TRY(library.kernels, load_templates(folder / "templates"), "templates");
  return library;
}

}  // namespace mc::forge
