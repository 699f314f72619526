// SPDX-License-Identifier: Apache-2.0
//
// What a process that runs candidate code may answer, and what a sanitizer's front end prints on
// its behalf: nothing of it may make the supervisor fail.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "execute/decode.h"
#include "execute/sanitizer_report.h"

namespace mc::execute {
namespace {

void check_answer(std::string_view answer) {
  if (nests_too_deeply(answer)) return;  // No message is parsed then.
  (void)decode_inspection(answer);
  (void)decode_plan(answer);
  (void)decode_run(answer);
  task::Trial trial;
  (void)decode_check(answer, trial);
}

}  // namespace
}  // namespace mc::execute

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  mc::execute::check_answer(text);
  (void)mc::execute::decode_findings(text, [](auto, auto) { return mc::task::Place{}; });
  MC_CHECK(mc::execute::parse_sanitizer_report(text).findings.size() <=
           mc::execute::kSanitizerFindingsMax);
  return 0;
}
