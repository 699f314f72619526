// SPDX-License-Identifier: Apache-2.0
//
// What any child may answer or be told: any text, and edited examples of each message that
// protocol.json defines, of each role.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "worker/envelope.h"
#include "worker/fakes/protocol_oracle.h"
#include "worker/protocol.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mc::worker;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t number = 0;
  for_each_message([&]<typename Message>() {
    reads<Message>(text);
    if (size > 0 && number++ % 256 == data[0]) {
      reads<Message>(edited(example<Message>().to_json(), text.substr(1)));
    }
  });
  if (nests_too_deeply(text)) return 0;
  is_ok(text);
  (void)decode_protections(text);
  (void)decode_refusal(text);
  return 0;
}
