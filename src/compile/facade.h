// SPDX-License-Identifier: Apache-2.0
//
// Facade: which sources compile against the thin headers under PyTorch's names
// (device/facade/include) instead of PyTorch's own, and whose fault it is where they do not
// (docs/ptx.md).
//
// Names decide.  Before compiling: a header or a name in PyTorch's namespaces that the facade does
// not have sends the extension to the full headers.  After a failure the first
// error decides, since later ones may follow from it.  It is the candidate's own where it lies in
// its text and names nothing that the facade could have wrong: nothing of PyTorch or the standard
// library, and nothing that PyTorch's headers declare in a namespace and the facade's do not
// mention.  A member that nothing in PyTorch's headers has is missing in the full ones, too. Errors
// of ptxas are always the candidate's own.
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
#include "task/verdict.h"

namespace mc::compile {

using Names = std::set<std::string, std::less<>>;

// Changes when write_missing_names() does.
inline constexpr const char* kNamesVersion = "names/4";

class Facade {
 public:
  // `roots` are the include folders that stand in for PyTorch's, `missing_names` a file that
  // write_missing_names() made.
  static Result<Facade> read(std::vector<std::filesystem::path> roots,
                             const std::filesystem::path& missing_names);

  // A name that the extension uses and the facade lacks, "torch::fft" or "<ATen/native/x.h>"; ""
  // where nothing.
  std::string lacks(const Extension& extension) const;

  // The first error, where it may be the facade's doing; "" where it is the candidate's own.
  std::string facade_error(const std::vector<task::Diagnostic>& diagnostics,
                           const LocationMapper& mapper) const;

 private:
  std::string lacks_in(std::string_view text, const Names& defined) const;
  bool has_header(std::string_view header) const;
  // An error in the candidate's text that PyTorch's own headers would not mend.
  bool is_own_error(const std::string& message) const;
  // True where neither the facade's headers nor PyTorch's have the name.
  bool is_made_up(std::string_view name) const;

  // Constant after construction.
  std::vector<std::filesystem::path> roots_;
  Names names_;    // All identifiers in the facade's headers.
  Names missing_;  // Those that PyTorch's headers bring, and the facade's do not.
  Names others_;   // The other identifiers in PyTorch's headers: members, parameters.
};

enum class Headers { kFacade, kFull };

template <class End>
struct WithFallback {
  End end;
  std::string full_headers;  // The member of Compilation (toolchain.h).
};

// `build(Headers)` gives a Result of `End`, a variant with task::CompileFailed: by the facade where
// there is one that serves by all that names tell, and against PyTorch's own headers where there is
// none, or where what fails by it may be its fault.  Of an extension with two modules that is told,
// not what a compiler makes of it.
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

// `full` and `thin` are preprocessed sources with their macros (-E -dD); writes the names that the
// first declares in namespaces, as enumerators and as macros, and the second does not mention; and
// apart from them all others in the first.
Status write_missing_names(std::string_view full, std::string_view thin,
                           const std::filesystem::path& path);

// Headers of the standard library and CUDA that PyTorch's would have brought and that
// `texts` seem to need, as include directives.
std::string includes_for(const std::vector<std::string>& texts);

}  // namespace mc::compile

#endif  // MC_COMPILE_FACADE_H_
