// SPDX-License-Identifier: Apache-2.0
#include "worker/envelope.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "sandbox/protection.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

constexpr int kNestingMax = 256;
constexpr size_t kTextBytesMax = 4096;
constexpr size_t kItemsMax = 64;

std::string text_of(const Json& object, const char* member) {
  const auto it = object.find(member);
  if (it == object.end() || it->is_null()) return "";
  return it->get<std::string>().substr(0, kTextBytesMax);
}

int64_t number_of(const Json& object, const char* member) {
  const auto it = object.find(member);
  return it == object.end() || it->is_null() ? 0 : it->get<int64_t>();
}

template <typename Decode>
void for_each_item(const Json& object, const char* member, const Decode& decode) {
  const auto it = object.find(member);
  if (it == object.end() || !it->is_array()) return;
  for (size_t i = 0; i < it->size() && i < kItemsMax; ++i) decode((*it)[i]);
}

task::SourceLocation location_of(const Json& object) {
  std::string source = text_of(object, "source");
  if (source.empty()) source = "candidate";
  return {source, static_cast<int>(number_of(object, "line")),
          static_cast<int>(number_of(object, "column")), text_of(object, "text").substr(0, 200)};
}

// Runs `decode` and turns nlohmann's exceptions into a protocol error.
template <typename T, typename Decode>
Result<T> guarded(std::string_view response, const Decode& decode) {
  try {
    return decode(Json::parse(response));
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string("malformed response: ") + failure.what()};
  }
}

}  // namespace

bool nests_too_deeply(std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (!in_text && (c == '[' || c == '{')) {
      if (++depth > kNestingMax) return true;
    } else if (!in_text && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

bool is_ok(std::string_view response) {
  const Json json = Json::parse(response, nullptr, false);
  return json.is_object() && json.contains("ok") && json["ok"].is_boolean() &&
         json["ok"].get<bool>();
}

Result<std::vector<std::string>> decode_protections(std::string_view response) {
  using Names = std::vector<std::string>;
  return guarded<Names>(response, [](const Json& json) -> Result<Names> {
    const Json& missing = json.at("missing");
    if (!missing.is_array()) return Error{ErrorCode::kProtocol, "\"missing\" is no list"};
    Names names;
    for (const Json& item : missing) {
      names.push_back(item.at("protection").get<std::string>());
      if (!sandbox::protection_named(names.back())) {
        return Error{ErrorCode::kProtocol, "unknown protection: " + names.back().substr(0, 100)};
      }
    }
    return names;
  });
}

Result<ErrorReply> decode_refusal(std::string_view response) {
  return guarded<ErrorReply>(response, [](const Json& json) {
    const Json& error = json.at("error");
    ErrorReply refusal{text_of(error, "kind"), text_of(error, "stage"), {}};
    refusal.exception.type = text_of(error, "type").substr(0, 200);
    refusal.exception.message = text_of(error, "message");
    for_each_item(error, "frames", [&](const Json& frame) {
      refusal.exception.frames.push_back(location_of(frame));
    });
    if (!refusal.exception.frames.empty()) {
      refusal.exception.location = refusal.exception.frames.back();
    }
    return refusal;
  });
}

}  // namespace mc::worker
