// SPDX-License-Identifier: Apache-2.0
//
// Lacks: which failures to compile on the CPU backend are the backend's, not the candidate's.
//
// The backend implements a part of CUDA.  A failure is the backend's where every error in it comes
// from a name that CUDA or PyTorch has and the backend has not: `tex2D`, `cub::DeviceHistogram`,
// <cuda_fp6.h>.  The names of CUDA are a list (emu/cuda_names.txt, made by tools/cuda_names.py from
// a toolkit), since a machine without a GPU need not have CUDA's headers; those of PyTorch are read
// from its own headers.  One error that no such name explains makes the failure the candidate's.
//
//   v[i] = tex1Dfetch<float>(t, i);   'tex1Dfetch' was not declared: CUDA has it
//   y[i] = v[i] * missing;            'missing' was not declared: the candidate's own error
#ifndef MC_COMPILE_CPU_LACKS_H_
#define MC_COMPILE_CPU_LACKS_H_

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compile/extension.h"
#include "core/result.h"
#include "task/verdict.h"

namespace mc::compile {

class CudaNames {
 public:
  // `list` is a file by tools/cuda_names.py, `includes` are the folders of PyTorch's headers, `own`
  // is that of the backend's.
  static Result<CudaNames> read(const std::filesystem::path& list,
                                std::vector<std::filesystem::path> includes,
                                std::filesystem::path own);

  bool has_header(std::string_view name) const { return headers_.contains(name); }
  // A function, type, macro or enumerator of the global namespace.
  bool has_global(std::string_view name) const { return global_.contains(name); }
  // A name in a namespace of CUDA's libraries.
  bool has_scoped(std::string_view name) const { return scoped_.contains(name); }
  // A data member of a structure of CUDA's.
  bool has_member(std::string_view name) const { return members_.contains(name); }
  // A word in the headers that PyTorch has for CUDA, and not in those that the backend has in their
  // place: a name of these is missing only where its include is.  Reads them.
  bool only_pytorch_has(std::string_view name) const;

 private:
  using Section = std::set<std::string, std::less<>>;

  // Constant after construction.
  std::vector<std::filesystem::path> includes_;
  std::filesystem::path own_;
  Section headers_, global_, scoped_, members_;
};

// The headers of CUDA's among the errors that name a file that does not exist, as they are named:
// "mma.h".
std::vector<std::string> missing_headers(const std::vector<task::Diagnostic>& diagnostics,
                                         const CudaNames& names);

// The facts that a failed compilation is known by, beside its diagnostics.
struct FailedSource {
  const Extension& extension;
  // Constructs that the backend is known to lack, with their places.
  const std::vector<task::RuleFinding>& constructs;
  // Headers that the backend lacks and that were taken out.
  const std::vector<std::string>& headers;
};

// The features that the backend lacks, each once; empty where an error is the candidate's own.
task::Unsupported lacks_of(const std::vector<task::Diagnostic>& diagnostics,
                           const FailedSource& source, const CudaNames& names);

}  // namespace mc::compile

#endif  // MC_COMPILE_CPU_LACKS_H_
