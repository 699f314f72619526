// SPDX-License-Identifier: Apache-2.0
#include "compile/diagnostics.h"

#include <algorithm>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

namespace mc::compile {
namespace {

using Json = nlohmann::json;

constexpr size_t kMessageBytesMax = 600;

std::string severity_of(const std::string& kind) {
  if (kind.find("error") != std::string::npos) return "error";
  return kind == "warning" ? "warning" : "note";
}

task::Diagnostic diagnostic_of(const Json& entry, const PlaceMapper& mapper) {
  task::Diagnostic diagnostic;
  diagnostic.severity = severity_of(entry.value("kind", "error"));
  diagnostic.message = entry.value("message", "").substr(0, kMessageBytesMax);
  const Json locations = entry.value("locations", Json::array());
  if (!locations.empty() && locations[0].contains("caret")) {
    const Json& caret = locations[0]["caret"];
    diagnostic.place =
        mapper.map(caret.value("file", ""), caret.value("line", 0), caret.value("column", 0));
  }
  return diagnostic;
}

void append_array(const std::string& line, const PlaceMapper& mapper,
                  std::vector<task::Diagnostic>& diagnostics) {
  const Json array = Json::parse(line, nullptr, false);
  if (!array.is_array()) return;
  for (const Json& entry : array) {
    try {
      diagnostics.push_back(diagnostic_of(entry, mapper));
    } catch (const Json::exception&) {
      diagnostics.push_back({"error", entry.dump().substr(0, kMessageBytesMax), {}});
    }
  }
}

bool is_linker_error(const std::string& line) {
  return line.find("undefined reference") != std::string::npos ||
         line.find("multiple definition") != std::string::npos ||
         line.find("error:") != std::string::npos || line.find("error: ") != std::string::npos;
}

}  // namespace

std::vector<task::Diagnostic> errors_first(std::vector<task::Diagnostic> diagnostics) {
  std::ranges::stable_partition(
      diagnostics, [](const task::Diagnostic& entry) { return entry.severity == "error"; });
  if (diagnostics.size() > kDiagnosticsMax) diagnostics.resize(kDiagnosticsMax);
  return diagnostics;
}

std::vector<task::Diagnostic> parse_gcc_diagnostics(std::string_view output,
                                                    const PlaceMapper& mapper) {
  std::vector<task::Diagnostic> diagnostics;
  std::istringstream stream{std::string(output)};
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with('[')) {
      append_array(line, mapper, diagnostics);
    } else if (is_linker_error(line)) {
      diagnostics.push_back({"error", line.substr(0, kMessageBytesMax), {}});
    }
  }
  return errors_first(std::move(diagnostics));
}

}  // namespace mc::compile
