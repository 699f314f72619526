// SPDX-License-Identifier: Apache-2.0
//
// MusaRows: rows of the data sets in the dialect of MUSA (docs/musa.md).
//
// The forge verifies kernels as CUDA.  A kernel is ported to MUSA by musify's rules, but only if
// porting it back to CUDA gives the same text.  `eval --dialect musa` judges exactly this port to
// CUDA, so both verdicts are the same.  Nothing here has run on MUSA hardware.
#ifndef MC_FORGE_MUSA_ROWS_H_
#define MC_FORGE_MUSA_ROWS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "musify/rules.h"

namespace mc::forge {

// Thread-safe.
class MusaRows {
 public:
  // Reads the rules of <folder>/rules.json.
  static Result<MusaRows> create(const std::filesystem::path& folder);

  // The row with all code and all names in its messages ported; empty if the port of some code is
  // not reversible.
  std::optional<std::string> port(const std::string& row) const;

  // A row that requests the port of a `generation` row's answer; its answer is the port, with a
  // list of the changed names.  Empty if there is no port.
  std::optional<std::string> lesson(const std::string& row) const;

 private:
  MusaRows(musify::Rules to_musa, musify::Rules to_cuda);
  std::optional<std::string> module_of(std::string_view cuda) const;
  std::optional<std::string> object_of(std::string_view cuda) const;  // Variants have one.
  std::optional<std::string> text_of(std::string_view cuda, int64_t& shift) const;

  musify::Rules to_musa_;
  musify::Rules to_cuda_;
};

}  // namespace mc::forge

#endif  // MC_FORGE_MUSA_ROWS_H_
