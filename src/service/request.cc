// SPDX-License-Identifier: Apache-2.0
#include "service/request.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <sodium.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "core/utf8.h"

namespace mc::service {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPriorityMax = 1'000'000;
constexpr double kDeadlineSecondsMax = 1e6;

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidInput, what}; }

bool has_text(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string();
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Parses JSON, also with a lone surrogate in a string.
Json parse_leniently(std::string_view text) {
  return Json::parse(without_lone_surrogates(text), nullptr, /*allow_exceptions=*/false);
}

Result<task::Task> parse_task(const Json& json, const task::Roots& roots) {
  if (json.is_string()) {
    const auto spec = json.get<std::string>();
    auto named = task::load_task(spec, roots);
    // Only a caller on this machine may name a file, so only that caller may see an error with a
    // path.
    if (named || spec.ends_with(".py")) return named;
    return wrong("\"task\": no task " + spec + " is known here; send {\"id\", \"code\"}");
  }
  if (!has_text(json, "code")) return wrong("\"task\" is neither a name nor has \"code\"");
  task::Task task;
  task.code = json["code"].get<std::string>();
  task.id = has_text(json, "id") ? json["id"].get<std::string>() : content_hash({task.code});
  task.name = task.id;
  if (task.code.size() > task::kTaskBytesMax) return wrong("the task's code is too large");
  return task;
}

template <typename T>
Status read_option(const Json& value, const std::string& name, T& out) {
  const bool fits = std::is_same_v<T, std::string> ? value.is_string()
                    : std::is_same_v<T, bool>      ? value.is_boolean()
                    : std::is_same_v<T, int>       ? value.is_number_integer()
                                                   : value.is_number();
  if (!fits) return wrong("\"options\": " + name + " has the wrong type");
  if constexpr (std::is_same_v<T, int>) {  // A number that does not fit is invalid, too.
    const auto wide = value.get<int64_t>();
    out = static_cast<int>(std::clamp<int64_t>(wide, -1, std::numeric_limits<int>::max()));
  } else {
    out = value.get<T>();
  }
  return ok();
}

Status read_dialect(const Json& value, std::optional<task::Dialect>& dialect) {
  for (const task::Dialect one : task::kDialects) {
    if (value == to_string(one)) dialect = one;
  }
  return dialect ? ok() : Status(wrong("\"options\": dialect: expected \"cuda\" or \"musa\""));
}

Status read_options(const Json& options, Request& request) {
  task::Correctness& correctness = request.correctness;
  if (!options.is_object()) return wrong("\"options\" is an object");
  for (const auto& [name, value] : options.items()) {
    Status read = ok();
    if (name == "trials") {
      read = read_option(value, name, correctness.trials);
    } else if (name == "inputs") {
      read = read_option(value, name, correctness.inputs);
    } else if (name == "shapes") {
      read = read_option(value, name, correctness.shapes);
    } else if (name == "require_general") {
      read = read_option(value, name, correctness.require_general);
    } else if (name == "mode") {
      read = read_option(value, name, correctness.mode);
    } else if (name == "precision") {
      read = read_option(value, name, correctness.precision);
    } else if (name == "tolerance") {
      read = read_option(value, name, correctness.tolerance_fp32);
    } else if (name == "tolerance_half") {
      read = read_option(value, name, correctness.tolerance_half);
    } else if (name == "dialect") {
      read = read_dialect(value, request.dialect);
    } else {
      read = wrong("\"options\" has no " + dump(name));
    }
    if (!read) return read;
  }
  const Status sound = check(correctness);
  return sound ? ok() : Status(wrong("\"options\": " + sound.error().message));
}

Result<Verb> parse_verb(const Json& json) {
  if (!json.contains("verb")) return Verb::kEvaluate;
  const std::pair<const char*, Verb> kVerbs[] = {{"evaluate", Verb::kEvaluate},
                                                 {"prepare", Verb::kPrepare},
                                                 {"measure", Verb::kMeasure},
                                                 {"cancel", Verb::kCancel},
                                                 {"about", Verb::kAbout}};
  for (const auto& [name, verb] : kVerbs) {
    if (json["verb"] == name) return verb;
  }
  return wrong("\"verb\" is none of evaluate, prepare, measure, cancel, about");
}

Status read_order(const Json& json, Request& request) {
  if (json.contains("priority")) {
    if (!json["priority"].is_number_integer()) return wrong("\"priority\" is a whole number");
    const auto wide = json["priority"].get<int64_t>();
    request.priority = static_cast<int>(std::clamp<int64_t>(wide, -kPriorityMax, kPriorityMax));
  }
  if (json.contains("deadline_s")) {
    const Json& seconds = json["deadline_s"];
    if (!seconds.is_number() || !(seconds.get<double>() > 0)) {
      return wrong("\"deadline_s\" is a positive number");
    }
    request.deadline_s = std::min(seconds.get<double>(), kDeadlineSecondsMax);
  }
  return ok();
}

Result<std::string> decode_base64(const std::string& text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  size_t size = 0;
  if (::sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                          text.size(), nullptr, &size, nullptr,
                          sodium_base64_VARIANT_ORIGINAL) != 0) {
    return wrong("\"prepared\" is not base64");
  }
  bytes.resize(size);
  return bytes;
}

Status read_work(const Json& json, const task::Roots& roots, Request& request) {
  if (request.verb == Verb::kMeasure) {
    if (!has_text(json, "prepared")) return wrong("a measure request needs \"prepared\", a text");
    MC_TRY(request.prepared, decode_base64(json["prepared"].get_ref<const std::string&>()),
           "request");
    return ok();
  }
  if (!has_text(json, "answer")) return wrong("a request needs \"answer\", a text");
  if (!json.contains("task")) return wrong("a request needs \"task\"");
  MC_TRY(request.task, parse_task(json["task"], roots), "task");
  request.candidate = {request.id.empty() ? request.task.id : request.id,
                       json["answer"].get<std::string>()};
  return ok();
}

}  // namespace

Result<Request> parse_request(std::string_view text, const task::Roots& roots,
                              const task::Correctness& correctness) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() && parse_leniently(text).is_object()) return wrong(kLoneSurrogate);
  if (!json.is_object()) return wrong("a request is a JSON object");
  Request request;
  request.correctness = correctness;
  MC_TRY(request.verb, parse_verb(json), "request");
  if (request.verb != Verb::kMeasure && text.size() > kRequestBytesMax) {
    return wrong(fmt::format("a request has at most {} bytes", kRequestBytesMax));
  }
  if (json.contains("id") && !json["id"].is_string()) return wrong("\"id\" is a text");
  if (has_text(json, "id")) request.id = json["id"].get<std::string>();
  if (request.verb == Verb::kCancel && request.id.empty()) return wrong("cancel needs an \"id\"");
  if (request.verb == Verb::kCancel || request.verb == Verb::kAbout) return request;
  MC_TRY_VOID(read_order(json, request), "request");
  MC_TRY_VOID(read_work(json, roots, request), "request");
  if (json.contains("options")) {
    MC_TRY_VOID(read_options(json["options"], request), "request");
  }
  return request;
}

std::string request_id(std::string_view text) {
  const Json json = parse_leniently(text);
  return has_text(json, "id") ? json["id"].get<std::string>() : "";
}

std::string content_key(const Request& request) {
  return content_hash({std::to_string(static_cast<int>(request.verb)), request.task.id,
                       request.task.code, request.candidate.answer, request.prepared,
                       to_string(request.correctness),
                       request.dialect ? to_string(*request.dialect) : ""});
}

}  // namespace mc::service
