// SPDX-License-Identifier: Apache-2.0
//
// What any child may answer, read as each answer of protocol.json.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "worker/envelope.h"
#include "worker/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view answer(reinterpret_cast<const char*>(data), size);
  const std::size_t num = mc::worker::count_readings(answer);
  MC_CHECK(num <= mc::worker::kNumAnswers);
  if (mc::worker::nests_too_deeply(answer)) {
    MC_CHECK(num == 0);
    return 0;
  }
  mc::worker::is_ok(answer);
  (void)mc::worker::decode_protections(answer);
  (void)mc::worker::decode_refusal(answer);
  return 0;
}
