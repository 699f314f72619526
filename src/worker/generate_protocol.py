# SPDX-License-Identifier: Apache-2.0
"""Writes protocol.h and protocol.cc from harness/worker/protocol.json.

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


def struct(name: str, members: Members, functions: list[str]) -> str:
    lines = [f"struct {name} {{"]
    for member, kind in members.items():
        plain = type_of(kind)
        kept = f"std::optional<{plain}>" if member.endswith("?") else plain
        lines.append(f"  {kept} {member.removesuffix('?')}{{}};")
    return "\n".join(lines + [f"  {function}" for function in functions] + ["};\n"])


def writer(name: str, members: Members, operation: str = "") -> str:
    lines = [
        f"Json json_of(const {name}& value) {{",
        "  (void)value;",
        "  Json json = Json::object();",
    ]
    if operation:
        lines.append(f'  json["op"] = "{operation}";')
    for member in members:
        known = member.removesuffix("?")
        if member.endswith("?"):
            lines.append(f'  if (value.{known}) json["{known}"] = json_of(*value.{known});')
        else:
            lines.append(f'  json["{known}"] = json_of(value.{known});')
    return "\n".join(lines + ["  return json;", "}\n"])


def reader(name: str, members: Members, envelope: str = "") -> str:
    known = [member.removesuffix("?") for member in members]
    names = ", ".join(f'"{member}"' for member in ([envelope] if envelope else []) + known)
    lines = [f"void read(const Json& json, {name}& value) {{", "  (void)value;"]
    lines.append(f"  refuse_unknown(json, {{{names}}});")
    for member in members:
        plain = member.removesuffix("?")
        if member.endswith("?"):
            lines.append(f'  if (json.contains("{plain}"))')
            lines.append(f'    read(json["{plain}"], value.{plain}.emplace());')
        else:
            lines.append(f'  read(needed(json, "{plain}"), value.{plain});')
    return "\n".join(lines + ["}\n"])


HEADER = """// Made by src/worker/generate_protocol.py from harness/worker/protocol.json.
//
// Each role's questions and answers: what it may be told, and no more.
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

"""

SOURCE = """// Made by src/worker/generate_protocol.py from harness/worker/protocol.json.
#include "worker/protocol.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "worker/envelope.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void refuse_unknown(const Json& json, std::initializer_list<std::string_view> names) {
  if (!json.is_object()) throw std::runtime_error("no object");
  for (const auto& [name, value] : json.items()) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw std::runtime_error("unknown member " + name.substr(0, 100));
  }
}

const Json& needed(const Json& json, const char* name) {
  const auto it = json.find(name);
  if (it == json.end()) throw std::runtime_error(std::string("no member ") + name);
  return *it;
}

[[maybe_unused]] void check(bool is_right, const char* kind) {
  if (!is_right) throw std::runtime_error(std::string("a member is no ") + kind);
}

[[maybe_unused]] Json json_of(const Tree& tree) { return Json::parse(tree.json); }
[[maybe_unused]] Json json_of(const std::string& value) { return value; }
[[maybe_unused]] Json json_of(int64_t value) { return value; }
[[maybe_unused]] Json json_of(uint64_t value) { return value; }
[[maybe_unused]] Json json_of(bool value) { return value; }
[[maybe_unused]] void read(const Json& json, Tree& tree) { tree.json = text_of(json); }
[[maybe_unused]] void read(const Json& json, std::string& value) {
  check(json.is_string(), "text");
  value = json.get<std::string>();
}
[[maybe_unused]] void read(const Json& json, int64_t& value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  check(json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= kMax),
        "int");
  value = json.get<int64_t>();
}
[[maybe_unused]] void read(const Json& json, uint64_t& value) {
  check(json.is_number_unsigned(), "seed");
  value = json.get<uint64_t>();
}
[[maybe_unused]] void read(const Json& json, bool& value) {
  check(json.is_boolean(), "bool");
  value = json.get<bool>();
}

// For the lists and maps below, which are of records too.
%(declarations)s
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

template <typename T>
Result<T> parse(std::string_view text, const char* what) {
  if (nests_too_deeply(text)) return Error{ErrorCode::kProtocol, std::string(what) + ": too deep"};
  try {
    T value;
    read(Json::parse(text), value);
    return value;
  } catch (const std::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string(what) + ": " + failure.what()};
  }
}

"""


def main() -> int:
    definition = json.loads(Path(sys.argv[1]).read_text())
    folder = Path(sys.argv[2])
    header, inner, outer, declarations = [HEADER], [], [], []
    for name, members in definition["records"].items():
        header.append(struct(camel(name), members, []))
        inner += [writer(camel(name), members), reader(camel(name), members)]
        declarations.append(f"[[maybe_unused]] Json json_of(const {camel(name)}& value);")
        declarations.append(f"[[maybe_unused]] void read(const Json& json, {camel(name)}& value);")
    for role, defined in definition["roles"].items():
        for operation, parts in defined["operations"].items():
            base = camel(role) + camel(operation)
            header.append(
                struct(f"{base}Question", parts["question"], ["std::string to_json() const;"])
            )
            reads = f"static Result<{base}Answer> from_json(std::string_view answer);"
            header.append(struct(f"{base}Answer", parts["answer"], [reads]))
            declarations.append(f"Json json_of(const {base}Question& value);")
            declarations.append(f"void read(const Json& json, {base}Answer& value);")
            inner.append(writer(f"{base}Question", parts["question"], operation))
            inner.append(reader(f"{base}Answer", parts["answer"], "ok"))
            outer.append(
                f"std::string {base}Question::to_json() const {{\n"
                "  return text_of(json_of(*this));\n}\n"
            )
            outer.append(
                f"Result<{base}Answer> {base}Answer::from_json(std::string_view answer) {{\n"
                f'  return parse<{base}Answer>(answer, "answer to {role}.{operation}");\n}}\n'
            )
    answers = [
        f"{camel(role)}{camel(operation)}Answer"
        for role, defined in definition["roles"].items()
        for operation in defined["operations"]
    ]
    header.append(
        "// As how many of the answers above this can be read; for the fuzz target.\n"
        f"inline constexpr size_t kNumAnswers = {len(answers)};\n"
        "size_t count_readings(std::string_view answer);\n"
    )
    sum_of = " +\n         ".join(
        f"size_t{{{name}::from_json(answer).has_value()}}" for name in answers
    )
    outer.append(f"size_t count_readings(std::string_view answer) {{\n  return {sum_of};\n}}\n")
    header.append("}  // namespace mc::worker\n\n#endif  // MC_WORKER_PROTOCOL_H_\n")
    source = SOURCE % {"declarations": "\n".join(declarations)}
    source += (
        "\n".join(inner)
        + "\n}  // namespace\n\n"
        + "\n".join(outer)
        + "\n}  // namespace mc::worker\n"
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "protocol.h").write_text("\n".join(header))
    (folder / "protocol.cc").write_text(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
