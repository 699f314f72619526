// SPDX-License-Identifier: Apache-2.0
//
// What a timed process answers, of any text and of edited examples: nothing of it may make the
// supervisor fail, and no number gets through that makes no sense.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/check.h"
#include "timing/timed_process.h"
#include "worker/fakes/protocol_oracle.h"
#include "worker/protocol.h"

namespace {

using Finish = mc::worker::ContestantTimeFinishAnswer;

void check(std::string_view text) {
  const auto said = Finish::from_json(text);
  mc::timing::Batch batch;
  if (!said || !mc::timing::take_times(*said, batch)) return;
  MC_CHECK(batch.events_us >= 0 && batch.busy_us >= 0);
  for (const mc::timing::TracedKernel& kernel : batch.kernels) {
    MC_CHECK(kernel.launches > 0 && kernel.time_us >= 0 && kernel.registers >= 0);
  }
  if (said->outputs) (void)mc::timing::take_outputs(*said->outputs, batch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check(text);
  check(mc::worker::edited(mc::worker::example<Finish>().to_json(), text));
  return 0;
}
