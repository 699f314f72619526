// SPDX-License-Identifier: Apache-2.0
//
// Extension: one call of torch.utils.cpp_extension.load_inline or load, as recorded.
//
// The recorder runs candidate code, so its response is untrusted input: it is parsed under limits,
// and its sources are compiled only in the sandbox.
#ifndef MC_COMPILE_EXTENSION_H_
#define MC_COMPILE_EXTENSION_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "task/evidence.h"

namespace mc::compile {

inline constexpr size_t kExtensionsMax = 8;
// The bound on all sources of one extension together.
inline constexpr size_t kSourceBytesMax = 1 << 20;

struct SourceFile {
  std::string name;
  std::string text;
};

struct Extension {
  std::string name;
  std::string
      key;  // The recorder's content hash, by which the candidate process finds the artifact.
  std::vector<std::string> cpp_sources;
  std::vector<std::string> cuda_sources;
  // The names and docs of functions to bind.
  std::vector<std::pair<std::string, std::string>> functions;
  std::vector<SourceFile> files;  // Headers that sources include.
  std::vector<std::string> extra_cflags;
  std::vector<std::string> extra_cuda_cflags;
  std::vector<std::string> extra_ldflags;
  std::string prelude;  // Text of ours before the CUDA sources; often "".
};

// Parses the `extensions` member of the recorder's response (docs/architecture.md).  kProtocol when
// it is malformed or exceeds the limits.
Result<std::vector<Extension>> parse_extensions(std::string_view recorder_answer);

// True where the extension's name affects the library only through PyInit_NAME: the sources use it
// only as the first argument of PYBIND11_MODULE, as TORCH_EXTENSION_NAME.  `flags` are those of the
// compilers.
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

// The error of a source that contains PYBIND11_MODULE although load_inline generates one for
// `functions`.
std::optional<task::Diagnostic> second_module(const Extension& extension,
                                              const LocationMapper& mapper);

// Headers that sources include and that are not the extension's own, each once, as written:
// "<cublas_v2.h>".
std::vector<std::string> headers_of(const Extension& extension);

// `text` with blanks in place of directives that include one of `headers`.
std::string without_includes(std::string text, const std::vector<std::string>& headers);

// Maps locations in pieces ("cuda_sources[0]":12) to locations in the candidate's Python text, and
// fills in the excerpts.  A line maps where the Python text has the same line, either at the offset
// of most other lines or exactly once.
class LocationMapper {
 public:
  LocationMapper(std::string_view candidate, const std::vector<Extension>& extensions);
  // The location in the first piece with that name that contains the kernel, or else in the first
  // piece with that name.
  task::SourceLocation map(const std::string& piece, int line, int column,
                           std::string_view kernel = {}) const;
  // A mapper for the pieces of one extension only: each extension has its own names.
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
