// SPDX-License-Identifier: Apache-2.0
//
// Any reports of the device and any output of a sanitizer's front end about candidate code: none of
// it may make the supervisor fail.  (The candidate's responses: worker/protocol_fuzz.cc.)
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "execute/decode.h"
#include "execute/sanitizer_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)mc::execute::decode_calls(text);
  (void)mc::execute::decode_findings(text, [](auto, auto) { return mc::task::SourceLocation{}; });
  MC_CHECK(mc::execute::parse_sanitizer_report(text).findings.size() <=
           mc::execute::kSanitizerFindingsMax);
  return 0;
}
