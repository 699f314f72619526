// SPDX-License-Identifier: Apache-2.0
#include "compile/pytorch.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

#include "compile/tool.h"
#include "core/file.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Reads the version file, because importing torch takes seconds.
constexpr const char* kQuestion = R"(
import importlib.util, json, os, pathlib, platform, sys, sysconfig
spec = importlib.util.find_spec("torch")
root = pathlib.Path(spec.origin).parent if spec and spec.origin else None
musa = importlib.util.find_spec("torch_musa")
scope = {}
if root:
    exec((root / "version.py").read_text(), scope)
print(json.dumps({"executable": sys.executable, "root": str(root) if root else "",
                  "version": str(scope.get("__version__", "")),
                  "include": sysconfig.get_path("include"), "python": platform.python_version(),
                  "torch_musa": os.path.dirname(getattr(musa, "origin", None) or "")}))
)";

}  // namespace

std::vector<fs::path> PyTorch::include_dirs() const {
  return {root / "include", root / "include/torch/csrc/api/include", python_include};
}

fs::path default_python() {
  if (const char* given = std::getenv("MC_PYTHON")) return given;
  const fs::path cache = cache_directory();
  const fs::path own = cache / "venv/bin/python";
  return !cache.empty() && path_exists(own) ? own : fs::path("python3");
}

Result<PyTorch> find_pytorch(const fs::path& python) {
  MC_TRY(const std::string answer, run_tool({python.string(), "-P", "-c", kQuestion}),
         "find PyTorch by Python 3.11 or later");
  const Json json = Json::parse(answer, nullptr, false);
  if (!json.is_object()) {
    return Error{ErrorCode::kUnavailable, python.string() + " does not answer as a Python does"};
  }
  PyTorch found{json.value("executable", ""), json.value("version", ""),
                json.value("root", ""),       json.value("include", ""),
                json.value("python", ""),     json.value("torch_musa", "")};
  if (found.root.empty()) {
    return Error{ErrorCode::kUnavailable, python.string() +
                                              " has no PyTorch: run ./run.sh setup, "
                                              "or pip install torch==2.11.0 and set MC_PYTHON"};
  }
  return found;
}

}  // namespace mc::compile
