// SPDX-License-Identifier: Apache-2.0
#include "cli/become_python.h"

#include <unistd.h>

#include "compile/pytorch.h"
#include "core/fd.h"

namespace mc::cli {

Error become_python(std::vector<std::string> words) {
  std::string python = compile::default_python();
  std::string safe_path = "-P";
  std::vector<char*> argv = {python.data(), safe_path.data()};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(python.c_str(), argv.data());
  return system_error(ErrorCode::kUnavailable, "cannot start " + python);
}

}  // namespace mc::cli
