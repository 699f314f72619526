// SPDX-License-Identifier: Apache-2.0
//
// Any text, and edited examples of each message of protocol.json, as a response from or a request
// to any role.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "worker/envelope.h"
#include "worker/fakes/protocol_oracle.h"
#include "worker/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mc::worker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size == 0) return 0;
  size_t number = 0;  // The first byte selects the message type.
  for_each_message([&]<typename Message>() {
    if (number++ != data[0]) return;
    reads<Message>(text.substr(1));
    reads<Message>(edited(example<Message>().to_json(), text.substr(1)));
  });
  if (nests_too_deeply(text)) return 0;
  is_ok(text);
  (void)decode_protections(text);
  (void)decode_refusal(text);
  return 0;
}
