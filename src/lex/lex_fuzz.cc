// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lex/testing/properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  mc::lex::check_properties(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
