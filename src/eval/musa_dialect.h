// SPDX-License-Identifier: Apache-2.0
//
// MusaDialect: a candidate that is written for MUSA is judged as its port to CUDA (docs/musa.md).
//
// The port has two parts.  The Python of the module is ported before it runs; its string literals
// with C++ stay.  The native sources are ported after the recorder has captured them, so that it
// makes no difference how the module assembles them: by `+`, f-strings, functions or files.
//
// The port changes words and keeps every line's number.  Verdicts show the candidate's own lines,
// and the names of MUSA in messages.  No result of the port has run on MUSA hardware.
#ifndef MC_EVAL_MUSA_DIALECT_H_
#define MC_EVAL_MUSA_DIALECT_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compile/extension.h"
#include "core/result.h"
#include "musify/rules.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::eval {

// Thread-safe.
class MusaDialect {
 public:
  // Reads the rules of <folder>/rules.json.
  static Result<MusaDialect> create(const std::filesystem::path& folder);

  // The module as a CUDA candidate, or its outcome: CompileFailed for words of CUDA that MUSA lacks
  // and for constructs that no MUSA compiler takes, Unsupported for names of MUSA without a port.
  std::variant<std::string, task::Outcome> port(std::string_view module,
                                                const std::string& architecture) const;

  // Changes the requests of the ported module into those that the original module would have made.
  void undo_port(std::vector<compile::Extension>& extensions, std::string_view module) const;

  // Ports the sources of the extensions that the module builds.  Returns the outcome of a rejected
  // candidate, and nothing otherwise.  `module` is the candidate's own text, and `mapper` knows the
  // extensions as they were.
  std::optional<task::Outcome> port_sources(std::vector<compile::Extension>& extensions,
                                            std::string_view module,
                                            const compile::LocationMapper& mapper,
                                            const std::string& architecture) const;

  // MUSA C++ or MUSA names, translated for the legality rules; each line keeps its number.
  std::string to_cuda(std::string_view text) const;

  // Restores names of MUSA and the candidate's own lines in the evidence about its port.  A verdict
  // about another dialect does not change.
  void restore(task::Verdict& verdict, const task::Candidate& candidate) const;

 private:
  MusaDialect(musify::Rules to_musa, musify::Rules to_cuda);

  musify::Rules to_musa_;
  musify::Rules to_cuda_;
};

// The macros that a MUSA compiler defines, as text before the candidate's device code.
std::string musa_prelude(const std::string& architecture);

// The flags of mcc in nvcc's form: flags that only MUSA has are left out, and flags of clang's host
// side are passed to the host compiler.
std::vector<std::string> nvcc_flags(const std::vector<std::string>& mcc_flags);

// Flags that make nvcc accept what mcc accepts by default: device lambdas, and operators and
// conversions of half and bfloat16, which PyTorch switches off for CUDA and torch_musa does not.
std::vector<std::string> flags_of_mcc();

// The inverse of nvcc_flags(), for flags that the legality rules passed, together with the
// candidate's own flags that only MUSA has.  The architecture and the language are left out, since
// the toolchain adds them.
std::vector<std::string> mcc_flags(const std::vector<std::string>& passed,
                                   const std::vector<std::string>& given);

// The CUDA name of a MUSA library: "-lcudart" for "-lmusart".
std::string cuda_link_flag(const std::string& flag);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_DIALECT_H_
