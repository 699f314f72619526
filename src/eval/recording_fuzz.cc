// SPDX-License-Identifier: Apache-2.0
//
// Any bytes behind a right hash: no crash, and an accepted recording is written again as it was
// read.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "eval/recording.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mc;  // NOLINT: a target of a few lines.
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  const auto plain = eval::recording_from_bytes(content);
  const auto recording = eval::recording_from_bytes(eval::with_hash(content));
  MC_CHECK(!plain || size > 64);
  if (!recording) return 0;
  const std::string bytes = eval::to_bytes(*recording);
  const auto again = eval::recording_from_bytes(bytes);
  MC_CHECK(again && eval::to_bytes(*again) == bytes);
  return 0;
}
