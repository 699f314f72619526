// SPDX-License-Identifier: Apache-2.0
//
// The rules are read from the folder $MC_MUSIFY (default ./musify).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "musify/testing/port_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mc::musify;  // NOLINT: a target of a few lines.
  static const char* kFolder = std::getenv("MC_MUSIFY");
  static const Rules kToMusa = load_rules(kFolder ? kFolder : "data/musify", Target::kMusa).value();
  static const Rules kToCuda = load_rules(kFolder ? kFolder : "data/musify", Target::kCuda).value();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_properties(text, kToMusa);
  check_properties(text, kToCuda);
  return 0;
}
