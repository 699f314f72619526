// SPDX-License-Identifier: Apache-2.0
//
// What a timed process answers: nothing of it may make the supervisor fail.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "timing/timed_process.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (mc::execute::nests_too_deeply(text)) return 0;  // No message is parsed then.
  if (const auto batch = mc::timing::decode_batch(text)) {
    MC_CHECK(batch->events_us >= 0);
    for (const mc::timing::TracedKernel& kernel : batch->kernels) {
      MC_CHECK(kernel.launches >= 0 && kernel.time_us >= 0);
    }
  }
  return 0;
}
