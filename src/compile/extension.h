// SPDX-License-Identifier: Apache-2.0
//
// Extension: one call of torch.utils.cpp_extension.load_inline or load, as the recorder saw it.
//
// The recorder runs candidate code, so its answer is outside input: it is parsed under limits, and
// the sources in it are only ever compiled in the sandbox.
#ifndef MC_COMPILE_EXTENSION_H_
#define MC_COMPILE_EXTENSION_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::compile {

inline constexpr size_t kExtensionsMax = 8;
inline constexpr size_t kSourceBytesMax = 1 << 20;  // All sources of one extension together.

struct SourceFile {
  std::string name;
  std::string text;
};

struct Extension {
  std::string name;
  std::string
      key;  // The recorder's content hash; the candidate process looks the artifact up by it.
  std::vector<std::string> cpp_sources;
  std::vector<std::string> cuda_sources;
  std::vector<std::pair<std::string, std::string>> functions;  // Name and doc, to be bound.
  std::vector<SourceFile> files;                               // Headers that sources include.
  std::vector<std::string> extra_cflags;
  std::vector<std::string> extra_cuda_cflags;
  std::vector<std::string> extra_ldflags;
  std::string prelude;  // Text before the CUDA sources that is not the candidate's; often "".
};

// The `extensions` member of the recorder's answer (docs/architecture.md).  kProtocol when it is
// not of that form or over the limits.
Result<std::vector<Extension>> parse_extensions(std::string_view recorder_answer);

// True where the library would be the same under another name but for PyInit_NAME: the name is the
// first argument of PYBIND11_MODULE alone, by TORCH_EXTENSION_NAME.  `flags` are the compilers'.
bool is_name_free(const Extension& extension, const std::vector<std::string>& flags);

class LocationMapper;

// One translation unit: pieces of candidate text, each with the name that diagnostics give it.
struct Unit {
  std::string file;  // "main.cpp" or "cuda.cu"
  std::vector<SourceFile> pieces;
};

// The units that load_inline would write: the C++ sources with the binding of `functions` in one
// unit, the CUDA sources in another.
std::vector<Unit> make_units(const Extension& extension);

// The error of a source that writes PYBIND11_MODULE although load_inline does, by `functions`.
std::optional<task::Diagnostic> second_module(const Extension& extension,
                                              const LocationMapper& mapper);

// Headers that sources include from elsewhere, each once, as it is written: "<cublas_v2.h>".
std::vector<std::string> headers_of(const Extension& extension);

// `text` with blanks for the directives that include one of `headers`.
std::string without_includes(std::string text, const std::vector<std::string>& headers);

// Turns places in pieces ("cuda_sources[0]":12) into places in the candidate's Python text where
// the same line stands there too, at the distance of most others or once, and fills the excerpts.
class LocationMapper {
 public:
  LocationMapper(std::string_view candidate, const std::vector<Extension>& extensions);
  // The first of several pieces of that name that has this kernel, or else the first of all.
  task::SourceLocation map(const std::string& piece, int line, int column,
                           std::string_view kernel = {}) const;
  // The same without the pieces of other extensions: names are an extension's own.
  LocationMapper of(size_t extension) const;
  // True if `source` names a piece, or the candidate.
  bool owns(std::string_view source) const;

 private:
  struct Piece {
    size_t extension;
    std::string name;
    std::vector<std::string> lines;
    int offset = -1;  // The candidate's line = piece line + offset; -1 when not found.
  };
  std::vector<std::string> candidate_lines_;
  std::vector<Piece> pieces_;
};

}  // namespace mc::compile

#endif  // MC_COMPILE_EXTENSION_H_
