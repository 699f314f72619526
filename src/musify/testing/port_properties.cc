// SPDX-License-Identifier: Apache-2.0
#include "musify/testing/port_properties.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/check.h"
#include "musify/port.h"

namespace mc::musify {
namespace {

std::size_t lines_of(std::string_view text) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

void check_port(std::string_view text, Language language, Lines lines, const Rules& rules) {
  PortOptions options;
  options.lines = lines;
  const Port port = port_source(text, language, rules, options);
  if (!port.refusals.empty() || port.changes.empty()) MC_CHECK(port.text == text);
  if (lines == Lines::kStay && rules.target == Target::kCuda) {
    MC_CHECK(lines_of(port.text) == lines_of(text));
  }
  for (const Change& change : port.changes) MC_CHECK(change.location.line <= lines_of(text));
  for (const auto* findings : {&port.refusals, &port.remnants, &port.warnings}) {
    for (const Finding& finding : *findings) MC_CHECK(finding.location.line <= lines_of(text));
  }
}

}  // namespace

void check_properties(std::string_view text, const Rules& rules) {
  for (const Language language : {Language::kCpp, Language::kPython}) {
    for (const Lines lines : {Lines::kMayGo, Lines::kStay}) {
      check_port(text, language, lines, rules);
    }
  }
  const std::string message = port_message(text, rules);
  MC_CHECK(lines_of(message) == lines_of(text));
}

}  // namespace mc::musify
