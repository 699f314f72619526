// SPDX-License-Identifier: Apache-2.0
//
// PyTorch: the installation that candidates are compiled with and run in.
#ifndef MC_COMPILE_PYTORCH_H_
#define MC_COMPILE_PYTORCH_H_

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::compile {

struct PyTorch {
  std::filesystem::path python;
  std::string version;         // "2.11.0+cu130"
  std::filesystem::path root;  // The package's directory.
  std::filesystem::path python_include;
  std::string python_version;             // "3.11.7"
  std::filesystem::path torch_musa = {};  // The folder of torch_musa; empty: not installed.
  std::vector<std::filesystem::path> include_dirs() const;
};

// Called with a phrase before each long step.
using Progress = std::function<void(std::string_view step)>;

// The interpreter to use: $MC_PYTHON, else the cache's virtual environment, else python3 on PATH.
std::filesystem::path default_python();

// Queries the interpreter for the path of torch, without importing it.  kUnavailable when it has
// none; the message contains the command that installs it.
Result<PyTorch> find_pytorch(const std::filesystem::path& python);

}  // namespace mc::compile

#endif  // MC_COMPILE_PYTORCH_H_
