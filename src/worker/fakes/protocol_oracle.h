// SPDX-License-Identifier: Apache-2.0
//
// For tests and the fuzz target: an example of each message of protocol.json, and the properties of
// any text that is parsed as one.
#ifndef MC_WORKER_FAKES_PROTOCOL_ORACLE_H_
#define MC_WORKER_FAKES_PROTOCOL_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "worker/envelope.h"
#include "worker/protocol.h"

namespace mc::worker {

template <typename T>
concept Record = requires(T& value) { T::for_each_member(value, [](auto&&...) {}); };

// Sets every member to a value, and gives every list one item, at every depth.
inline void fill(std::string& value) { value = "a"; }
inline void fill(int64_t& value) { value = -3; }
inline void fill(uint64_t& value) { value = std::numeric_limits<uint64_t>::max(); }
inline void fill(double& value) { value = 0.5; }
inline void fill(bool& value) { value = true; }
inline void fill(Tree& value) { value.json = R"([{"t":"list"}])"; }
template <typename T>
void fill(std::optional<T>& value);
template <typename T>
void fill(std::vector<T>& values);
template <typename T>
void fill(std::map<std::string, T>& values);
template <Record T>
void fill(T& record) {
  T::for_each_member(record, [](const char*, auto& member) { fill(member); });
}
template <typename T>
void fill(std::optional<T>& value) {
  fill(value.emplace());
}
template <typename T>
void fill(std::vector<T>& values) {
  fill(values.emplace_back());
}
template <typename T>
void fill(std::map<std::string, T>& values) {
  fill(values["key"]);
}
template <typename Message>
Message example() {
  Message message;
  fill(message);
  return message;
}

// True if the text can be parsed as the message.  Then writing it and parsing it again gives the
// same message.
template <typename Message>
bool reads(std::string_view text) {
  const auto message = Message::from_json(text);
  if (!message) return false;
  MC_CHECK(!nests_too_deeply(text));
  const std::string written = message->to_json();
  const auto again = Message::from_json(written);
  MC_CHECK(again.has_value() && again->to_json() == written);
  return true;
}

// The text with some bytes replaced, removed or duplicated; each edit is three bytes of `edits`.
inline std::string edited(std::string text, std::string_view edits) {
  for (; edits.size() >= 3 && !text.empty(); edits.remove_prefix(3)) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(edits[i]); };
    const size_t at = (size_t{byte(0)} * 256 + byte(1)) % text.size();
    if (byte(2) == 0) {
      text.erase(at, 1);
    } else if (byte(2) == 1) {
      text.insert(at, text.substr(at, 16));
    } else {
      text[at] = edits[2];
    }
  }
  return text;
}

}  // namespace mc::worker

#endif  // MC_WORKER_FAKES_PROTOCOL_ORACLE_H_
