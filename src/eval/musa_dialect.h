// SPDX-License-Identifier: Apache-2.0
//
// MusaDialect: a candidate that is written for MUSA is judged as its port to CUDA (docs/musa.md).
//
// The port has two parts.  The Python of the module is ported before it runs; its string literals
// with C++ stay.  The native sources are ported when the recorder has seen them, so that it makes
// no difference how the module put them together: by `+`, f-strings, functions or files.
//
// The port changes words and keeps every line's number.  Verdicts show the candidate's own lines,
// and the names of MUSA in messages.  No result of this has run on MUSA hardware.
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

  // Makes what the ported module asked for what the module itself would have asked for.
  void undo_port(std::vector<compile::Extension>& extensions, std::string_view module) const;

  // Ports the sources of the extensions that the module asked for.  Returns the outcome of a
  // candidate that is refused, and nothing otherwise.  `module` is the candidate's own text, and
  // `mapper` knows the extensions as they were.
  std::optional<task::Outcome> port_sources(std::vector<compile::Extension>& extensions,
                                            std::string_view module,
                                            const compile::LocationMapper& mapper,
                                            const std::string& architecture) const;

  // C++ of MUSA, or names of it, as the rules of legality know them; each line keeps its number.
  std::string to_cuda(std::string_view text) const;

  // Puts names of MUSA and the candidate's own lines into the evidence about its port.  Nothing
  // happens to a verdict about another dialect.
  void restore(task::Verdict& verdict, const task::Candidate& candidate) const;

 private:
  MusaDialect(musify::Rules to_musa, musify::Rules to_cuda);

  musify::Rules to_musa_;
  musify::Rules to_cuda_;
};

// The names that a MUSA compiler defines, as text before the candidate's device code.
std::string musa_prelude(const std::string& architecture);

// Flags of mcc as nvcc has them: those for MUSA alone are left out, and those of clang's host side
// are handed to the host compiler.
std::vector<std::string> nvcc_flags(const std::vector<std::string>& mcc_flags);

// Flags by which nvcc takes what mcc does unasked: lambdas of the device, and operators and
// conversions of half and bfloat16, which PyTorch switches off for CUDA and torch_musa does not.
std::vector<std::string> flags_of_mcc();

// The way back, for flags that legality let pass, and the candidate's own flags for MUSA alone.
// The architecture and the language are left out: the toolchain gives them.
std::vector<std::string> mcc_flags(const std::vector<std::string>& passed,
                                   const std::vector<std::string>& given);

// The name that a library of MUSA has on CUDA: "-lcudart" of "-lmusart".
std::string cuda_link_flag(const std::string& flag);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_DIALECT_H_
