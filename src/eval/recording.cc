// SPDX-License-Identifier: Apache-2.0
#include "eval/recording.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "execute/children.h"
#include "task/verdict_json.h"

namespace mc::eval {
namespace {

using Json = nlohmann::json;

Error no_recording(const std::string& why) {
  return {ErrorCode::kInvalidInput, "no recording: " + why};
}

}  // namespace

std::string with_hash(std::string_view content) {
  std::string bytes = std::string(kRecordingSchema) + " " + content_hash({content}) + "\n";
  return bytes.append(content);
}

std::string to_bytes(const Recording& recording) {
  const Json json{
      {"verdict", Json::parse(task::to_json(recording.verdict, task::Indent::kCompact))},
      {"device", recording.device}};
  return with_hash(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" +
                   recording.data);
}

Result<Recording> recording_from_bytes(std::string_view bytes) {
  const std::string schema = std::string(kRecordingSchema) + " ";
  const size_t end = bytes.find('\n');
  if (!bytes.starts_with(schema) || end == std::string_view::npos) {
    return no_recording("its first line is not " + schema + "and a hash");
  }
  const std::string_view hash = bytes.substr(schema.size(), end - schema.size());
  bytes.remove_prefix(end + 1);
  if (hash != content_hash({bytes})) {
    return no_recording("its bytes are not those that were written: the hash differs");
  }
  const std::string_view header = bytes.substr(0, bytes.find('\n'));
  if (header.size() == bytes.size()) return no_recording("it has no data");
  if (execute::nests_too_deeply(header)) return no_recording("its JSON nests too deeply");
  try {
    const Json json = Json::parse(header);
    MC_TRY(task::Verdict verdict, task::verdict_from_json(json.at("verdict").dump()), "verdict");
    return Recording{std::move(verdict), json.at("device").get<std::string>(),
                     std::string(bytes.substr(header.size() + 1))};
  } catch (const Json::exception&) {
    return no_recording("its second line is not of the form");
  }
}

}  // namespace mc::eval
