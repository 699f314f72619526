// SPDX-License-Identifier: Apache-2.0
//
// MusaRows: rows of the data sets in the dialect of MUSA (docs/musa.md).
//
// The forge verifies kernels as CUDA.  A kernel is ported to MUSA by musify's rules, and only where
// the port of that back to CUDA gives the same text: that port is what `eval --dialect musa`
// judges, so the verdict of the one is the verdict of the other.  Nothing here ran on MUSA.
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

  // The row with all code and all names in its messages ported, or nothing where some code has no
  // port that gives the same text back.
  std::optional<std::string> port(const std::string& row) const;

  // A row that asks for the port of a `generation` row's answer, and has it with a list of the
  // changed names.  Nothing where there is none.
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
