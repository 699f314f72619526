// SPDX-License-Identifier: Apache-2.0
//
// Facade: decides which sources compile with thin headers under PyTorch's names
// (device/facade/include) instead of PyTorch's own, and whether the facade or the candidate caused
// an error (docs/ptx.md).
//
// The decision is based on names.  Before compilation, a header or a name in PyTorch's namespaces
// that the facade lacks selects the full headers.  After a failure, the first error decides, since
// later ones may follow from it.  It is the candidate's own where it is in the candidate's text and
// names nothing that the facade could have wrong: nothing of PyTorch or the standard library, and
// nothing that PyTorch's headers declare in a namespace and the facade's headers do not mention.  A
// member that does not occur in PyTorch's headers is missing in the full headers, too.  Errors of
// ptxas are always the candidate's own.
#ifndef MC_COMPILE_FACADE_H_
#define MC_COMPILE_FACADE_H_

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "compile/extension.h"
#include "core/result.h"
#include "task/outcome.h"

namespace mc::compile {

using Names = std::set<std::string, std::less<>>;

// The version of write_missing_names().
inline constexpr const char* kNamesVersion = "names/4";

class Facade {
 public:
  // `roots` are the include folders that replace PyTorch's; `missing_names` is a file from
  // write_missing_names().
  static Result<Facade> read(std::vector<std::filesystem::path> roots,
                             const std::filesystem::path& missing_names);

  // A name that the extension uses and the facade lacks, "torch::fft" or "<ATen/native/x.h>"; ""
  // where there is none.
  std::string lacks(const Extension& extension) const;

  // The first error, where the facade may have caused it; "" where the candidate did.
  std::string facade_error(const std::vector<task::Diagnostic>& diagnostics,
                           const LocationMapper& mapper) const;

 private:
  std::string lacks_in(std::string_view text, const Names& defined) const;
  bool has_header(std::string_view header) const;
  // True for an error in the candidate's text that PyTorch's own headers would report, too.
  bool is_own_error(const std::string& message) const;
  // True if neither the facade's headers nor PyTorch's contain the name.
  bool is_made_up(std::string_view name) const;

  // Constant after construction.
  std::vector<std::filesystem::path> roots_;
  Names names_;    // All identifiers in the facade's headers.
  Names missing_;  // Names that PyTorch's headers declare and the facade's do not mention.
  Names others_;   // The other identifiers in PyTorch's headers: members, parameters.
};

enum class Headers { kFacade, kFull };

template <class End>
struct WithFallback {
  End end;
  std::string full_headers;  // The member of Compilation (toolchain.h).
};

// Builds with the facade where its names suffice; with PyTorch's own headers where they do not,
// where there is no facade, or where the facade may have caused a failure.  `build(Headers)`
// returns a Result of `End`, a variant with task::CompileFailed.  The error of an extension with
// two modules is reported as such, and not as the compiler's message.
template <class End, class BuildFn>
Result<WithFallback<End>> build_with_fallback(const Facade* facade, const Extension& extension,
                                              const LocationMapper& mapper, BuildFn build) {
  const auto build_and_tell = [&](Headers headers) -> Result<End> {
    MC_TRY(End end, build(headers), "compile");
    if (!std::holds_alternative<task::CompileFailed>(end)) return end;
    const auto second = second_module(extension, mapper);
    return second ? End(task::CompileFailed{{*second}}) : std::move(end);
  };
  std::string lacks = facade != nullptr ? facade->lacks(extension) : "no facade";
  if (lacks.empty()) {
    MC_TRY(End end, build_and_tell(Headers::kFacade), "facade");
    const auto* failed = std::get_if<task::CompileFailed>(&end);
    if (failed != nullptr) lacks = facade->facade_error(failed->diagnostics, mapper);
    if (lacks.empty()) return WithFallback<End>{std::move(end), ""};
  }
  MC_TRY(End end, build_and_tell(Headers::kFull), "full headers");
  return WithFallback<End>{std::move(end), std::move(lacks)};
}

// Writes the names that `full` declares in namespaces, as enumerators and as macros, and that
// `thin` does not mention; and, in a second list, all other names in `full`.  Both are preprocessed
// sources with their macros (-E -dD).
Status write_missing_names(std::string_view full, std::string_view thin,
                           const std::filesystem::path& path);

// Include directives for headers of the standard library and CUDA that `texts` seem to need, and
// that PyTorch's headers would have included.
std::string includes_for(const std::vector<std::string>& texts);

}  // namespace mc::compile

#endif  // MC_COMPILE_FACADE_H_
