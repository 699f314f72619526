// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: no crash, and an accepted file is written again as it was read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/file.h"
#include "eval/prepared.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mc;  // NOLINT: a target of a few lines.
  static const auto kFolder = TemporaryDirectory::create("mc-prepared-fuzz").value();
  const auto prepared =
      eval::prepared_from_bytes({reinterpret_cast<const char*>(data), size}, kFolder.path());
  if (!prepared) return 0;
  const std::string bytes = eval::to_bytes(*prepared).value();
  const auto again = eval::prepared_from_bytes(bytes, kFolder.path());
  MC_CHECK(again && eval::to_bytes(*again).value() == bytes);
  return 0;
}
