// SPDX-License-Identifier: Apache-2.0
#include "musify/port.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "musify/apply_rules.h"
#include "musify/edits.h"
#include "musify/notices.h"
#include "musify/python_additions.h"

namespace mc::musify {
namespace {

void append(std::vector<Finding>& all, std::vector<Finding> more) {
  std::ranges::move(more, std::back_inserter(all));
}

void sort(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, {}, [](const Finding& finding) {
    return std::pair(finding.location.line, finding.location.column);
  });
}

// Adds findings about constructs, without changing the text.
void add_notices(const std::vector<Unit>& units, const Rules& rules, const Names& defined,
                 const PortOptions& options, const Edits& edits, Port& port) {
  for (const Unit& unit : units) {
    append(port.refusals, noticed(unit, rules.refused, defined, edits));
    append(port.warnings, noticed(unit, rules.warned, defined, edits));
    if (rules.target == Target::kMusa && unit.language == Language::kCpp &&
        has_wide_warps(options.architecture)) {
      append(port.warnings, warp_hazards(unit, edits));
    }
  }
}

// Additions and removals are proposed before the rules run; otherwise rules would change words of
// removed text.
void add_or_remove_python(std::string_view text, const std::vector<Word>& words, const Rules& rules,
                          const PortOptions& options, Edits& edits, Port& port) {
  if (rules.target == Target::kMusa) {
    append(port.warnings, add_architecture(words, rules, options.architecture, edits));
  } else {
    if (options.lines == Lines::kMayGo) remove_architecture(words, rules, edits);
    remove_import(text, words, options.lines, edits);
  }
}

}  // namespace

std::vector<std::string> architectures() { return {"mp_10", "mp_21", "mp_22", "mp_31", "mp_32"}; }

Port::Status Port::status() const {
  if (!refusals.empty()) return Status::kRefused;
  if (!remnants.empty()) return Status::kPartial;
  return changes.empty() ? Status::kUnchanged : Status::kPorted;
}

const char* name_of(Port::Status status) {
  switch (status) {
    case Port::Status::kUnchanged:
      return "unchanged";
    case Port::Status::kPorted:
      return "ported";
    case Port::Status::kPartial:
      return "partial";
    case Port::Status::kRefused:
      return "refused";
  }
  MC_CHECK(false);
}

Port port_source(std::string_view text, Language language, const Rules& rules,
                 const PortOptions& options) {
  const std::vector<Unit> units = units_of(text, language, rules.cpp_markers, options.embedded);
  MC_CHECK(!units.empty());
  Names defined = names_defined_in(units);
  defined.insert(options.project.names.begin(), options.project.names.end());
  defined.insert(rules.remnants.allowed.begin(), rules.remnants.allowed.end());
  const bool binds_module = options.lines == Lines::kStay && rules.target == Target::kCuda;
  if (binds_module) defined.insert("torch_musa");  // The import becomes an assignment to this name.
  Port port;
  Edits edits(text, options.lines);
  add_notices(units, rules, defined, options, edits, port);
  const bool is_python = language == Language::kPython;
  if (is_python) add_or_remove_python(text, units[0].words, rules, options, edits, port);
  for (const Unit& unit : units) {
    append(port.remnants, apply_rules(unit, rules, defined, options.project.files, edits));
  }
  if (is_python && rules.target == Target::kMusa && !edits.empty()) {
    add_import(text, units[0].words, edits);
  }
  for (const Unit& unit : units) {
    append(port.remnants, remnants_of(unit, rules, defined, options.project.files, edits));
  }
  if (!port.refusals.empty()) port.remnants.clear();
  sort(port.refusals);
  sort(port.remnants);
  sort(port.warnings);
  port.text = port.refusals.empty() ? edits.apply() : std::string(text);
  if (port.refusals.empty()) port.changes = edits.changes();
  return port;
}

std::optional<Location> first_loss(std::string_view text, const Port& port, Language language,
                                   const Rules& back, PortOptions options) {
  Names renamed;
  for (const std::string& file : options.project.files) {
    renamed.insert(file);
    for (const Pair& suffix : back.suffixes) {
      if (!file.ends_with(suffix.to)) continue;
      renamed.insert(file.substr(0, file.size() - suffix.to.size()) + suffix.from);
    }
  }
  options.project.files = std::move(renamed);
  const std::string returned = port_source(port.text, language, back, options).text;
  if (returned == text) return std::nullopt;
  const auto difference = std::ranges::mismatch(text, returned);
  return Edits(text).location_of(static_cast<std::size_t>(difference.in1 - text.begin()));
}

}  // namespace mc::musify
