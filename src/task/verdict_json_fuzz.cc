// SPDX-License-Identifier: Apache-2.0
//
// Any text: no crash, and an accepted text is written and parsed again as the same JSON.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "task/verdict_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace mc::task;  // NOLINT: a target of five lines.
  const auto verdict = verdict_from_json({reinterpret_cast<const char*>(data), size});
  if (!verdict) return 0;
  const std::string text = to_json(*verdict, Indent::kCompact);
  const auto again = verdict_from_json(text);
  MC_CHECK(again && to_json(*again, Indent::kPretty) == to_json(*verdict, Indent::kPretty));
  return 0;
}
