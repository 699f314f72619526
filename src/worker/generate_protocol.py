# SPDX-License-Identifier: Apache-2.0
"""Writes protocol.h and protocol.cc from python/harness/worker/protocol.json.

python3 generate_protocol.py protocol.json FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCALARS = {
    "text": "std::string",
    "int": "int64_t",
    "real": "double",
    "seed": "uint64_t",
    "bool": "bool",
    "tree": "Tree",
}
Members = dict[str, Any]


def camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def type_of(kind: Any) -> str:
    if isinstance(kind, list):
        return f"std::vector<{type_of(kind[0])}>"
    if isinstance(kind, dict):
        return f"std::map<std::string, {type_of(kind['*'])}>"
    return SCALARS.get(kind) or camel(kind)


def struct(name: str, members: Members, constants: list[str]) -> str:
    """A record, or a message, which has constants."""
    lines = [f"struct {name} {{", *(f"  {line}" for line in constants)]
    visits = []
    for member, kind in members.items():
        known = member.removesuffix("?")
        plain = type_of(kind)
        kept = f"std::optional<{plain}>" if member != known else plain
        lines.append(f"  {kept} {known}{{}};")
        visits.append(f'    each("{known}", self.{known});')
    if constants:
        lines.append("  std::string to_json() const;")
        lines.append(f"  static Result<{name}> from_json(std::string_view text);")
    lines.append("  template <typename Self, typename Each>")
    arguments = "Self& self, const Each& each" if visits else "Self&, const Each&"
    lines.append(f"  static void for_each_member({arguments}) {{")
    return "\n".join([*lines, *visits, "  }", "};\n"])


def exchange(role: str, operation: str, parts: dict[str, Any]) -> str:
    """The structs of an operation's response and request."""
    base = camel(role) + camel(operation)
    structs = []
    for way, suffix, frame, named in (
        ("answer", "Response", ("ok", "true"), []),
        ("question", "Request", ("op", f'"{operation}"'), [f"using Body = {base}Response;"]),
    ):
        has_region = "true" if way in parts.get("region", ()) else "false"
        constants = [
            f"static constexpr Frame kFrame{{{json.dumps(frame[0])}, {json.dumps(frame[1])}}};",
            f"static constexpr bool kHasRegion = {has_region};",
        ]
        structs.append(struct(base + suffix, parts[way], constants + named))
    return "\n".join(structs)


HEADER = """// Made by src/worker/generate_protocol.py from python/harness/worker/protocol.json.
//
// Each role's requests and responses: what it may be told, and no more.
#ifndef MC_WORKER_PROTOCOL_H_
#define MC_WORKER_PROTOCOL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::worker {

struct Tree {  // A value as docs/architecture.md describes it under "Regions".
  std::string json = "null";
};

// The member that every message of its kind has besides, and its value as JSON.
struct Frame {
  const char* name;
  const char* json;
};

"""

FOOTER = """
// Calls `visit` for each message T, as visit.operator()<T>().
template <typename Visit>
void for_each_message(const Visit& visit) {
%s}

}  // namespace mc::worker

#endif  // MC_WORKER_PROTOCOL_H_
"""

SOURCE = """// Made by src/worker/generate_protocol.py from python/harness/worker/protocol.json.
#include "worker/protocol.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "worker/envelope.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void check(bool is_right, const char* kind) {
  if (!is_right) throw std::runtime_error(std::string("a member is no ") + kind);
}

template <typename T>
constexpr bool kIsOptional = false;
template <typename T>
constexpr bool kIsOptional<std::optional<T>> = true;

template <typename T>
concept Record = requires(T& value) { T::for_each_member(value, [](auto&&...) {}); };
template <typename T>
concept Scalar = std::is_same_v<T, std::string> || std::is_same_v<T, bool> ||
                 std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>;

// ---- Writing

template <Scalar T>
Json json_of(const T& value) {
  return value;
}
Json json_of(const Tree& tree) { return Json::parse(tree.json); }
Json json_of(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
template <Record T>
Json json_of(const T& value);
template <typename T>
Json json_of(const std::vector<T>& values) {
  Json json = Json::array();
  for (const T& value : values) json.push_back(json_of(value));
  return json;
}
template <typename T>
Json json_of(const std::map<std::string, T>& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_of(value);
  return json;
}
template <Record T>
Json json_of(const T& value) {
  Json json = Json::object();
  T::for_each_member(value, [&]<typename Member>(const char* name, const Member& member) {
    if constexpr (kIsOptional<Member>) {
      if (member) json[name] = json_of(*member);
    } else {
      json[name] = json_of(member);
    }
  });
  return json;
}

// ---- Reading

void read(const Json& json, Tree& tree) { tree.json = text_of(json); }
void read(const Json& json, std::string& value) {
  check(json.is_string(), "text");
  value = json.get<std::string>();
}
void read(const Json& json, int64_t& value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  check(json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= kMax),
        "int");
  value = json.get<int64_t>();
}
void read(const Json& json, uint64_t& value) {
  check(json.is_number_unsigned(), "seed");
  value = json.get<uint64_t>();
}
void read(const Json& json, bool& value) {
  check(json.is_boolean(), "bool");
  value = json.get<bool>();
}
void read(const Json& json, double& value) {
  if (json == "inf" || json == "-inf") {
    value = (json == "inf" ? 1 : -1) * std::numeric_limits<double>::infinity();
  } else if (json == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    check(json.is_number(), "real");
    value = json.get<double>();
  }
}
template <Record T>
void read(const Json& json, T& value);
template <typename T>
void read(const Json& json, std::vector<T>& values) {
  check(json.is_array(), "list");
  for (const Json& item : json) read(item, values.emplace_back());
}
template <typename T>
void read(const Json& json, std::map<std::string, T>& values) {
  check(json.is_object(), "map");
  for (const auto& [name, item] : json.items()) read(item, values[name]);
}
template <Record T>
void read(const Json& json, T& value) {
  check(json.is_object(), "object");
  size_t num_known = 0;
  T::for_each_member(value, [&]<typename Member>(const char* name, Member& member) {
    const auto it = json.find(name);
    num_known += it == json.end() ? 0 : 1;
    if constexpr (kIsOptional<Member>) {
      if (it != json.end()) read(*it, member.emplace());
    } else {
      if (it == json.end()) throw std::runtime_error(std::string("no member ") + name);
      read(*it, member);
    }
  });
  if (num_known == json.size()) return;
  for (const auto& [name, item] : json.items()) {
    bool is_known = false;
    T::for_each_member(value, [&](const char* known, auto&) { is_known |= name == known; });
    if (!is_known) throw std::runtime_error("unknown member " + name.substr(0, 100));
  }
}

// ---- Messages

template <typename T>
std::string write(const T& message) {
  Json json = json_of(message);
  json[T::kFrame.name] = Json::parse(T::kFrame.json);
  return text_of(json);
}

template <typename T>
Result<T> parse(std::string_view text, const char* name) {
  if (nests_too_deeply(text)) return Error{ErrorCode::kProtocol, std::string(name) + ": too deep"};
  try {
    Json json = Json::parse(text);
    const auto frame = json.find(T::kFrame.name);
    check(frame != json.end() && *frame == Json::parse(T::kFrame.json), "message of its kind");
    json.erase(frame);
    T message;
    read(json, message);
    return message;
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string(name) + ": " + failure.what()};
  }
}

}  // namespace

"""

FUNCTIONS = """std::string %(name)s::to_json() const { return write(*this); }
Result<%(name)s> %(name)s::from_json(std::string_view text) {
  return parse<%(name)s>(text, "%(name)s");
}
"""


def main() -> int:
    definition = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    exchanges = [
        (role, operation, parts)
        for role, operations in definition["roles"].items()
        for operation, parts in operations.items()
        if not isinstance(parts, str)  # Those are another role's.
    ]
    names = [
        camel(role) + camel(operation) + way
        for role, operation, _ in exchanges
        for way in ("Response", "Request")
    ]
    header = [struct(camel(name), members, []) for name, members in definition["records"].items()]
    header += [exchange(*one) for one in exchanges]
    visits = "".join(f"  visit.template operator()<{name}>();\n" for name in names)
    functions = "".join(FUNCTIONS % {"name": name} for name in names)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "protocol.h").write_text(HEADER + "\n".join(header) + FOOTER % visits)
    (folder / "protocol.cc").write_text(SOURCE + functions + "\n}  // namespace mc::worker\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
