// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the bundle reader with arbitrary images: code that it finds must be inside the image.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "check.h"
#include "cuda/offload_bundle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* architecture : {"mp_22", "mp_31", ""}) {
    const std::string_view code = mc::device::code_in_bundle(bytes, architecture);
    MC_CHECK(code.empty() || (code.data() >= bytes.data() &&
                              code.data() + code.size() <= bytes.data() + bytes.size()));
  }
  return 0;
}
