// SPDX-License-Identifier: Apache-2.0
#include "execute/decode.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "execute/children.h"

namespace mc::execute {
namespace {

using Json = nlohmann::json;

constexpr size_t kTextBytesMax = 4096;
constexpr size_t kItemsMax = 64;

constexpr size_t kOpsMax = 256;
constexpr size_t kNameBytesMax = 200;
constexpr size_t kExcerptBytesMax = 200;

std::string cut(std::string text, size_t bytes_max = kTextBytesMax) {
  text.resize(std::min(text.size(), bytes_max));
  return text;
}

// The first `kItemsMax` items, converted.
template <typename From, typename Convert>
auto converted(std::vector<From> items, const Convert& convert) {
  std::vector<decltype(convert(std::move(items[0])))> found;
  items.resize(std::min(items.size(), kItemsMax));
  for (From& item : items) found.push_back(convert(std::move(item)));
  return found;
}

std::string name_of(std::string name) { return cut(std::move(name), kNameBytesMax); }

// The location of a syntax error or finding.
template <typename At>
task::SourceLocation location_of(At at) {
  return {"candidate", static_cast<int>(at.line), static_cast<int>(at.column),
          cut(std::move(at.text), kExcerptBytesMax)};
}

task::RuleFinding rule_finding_of(worker::Finding response) {
  task::RuleFinding finding{cut(std::move(response.rule)), cut(std::move(response.message)), {}};
  finding.location = location_of(std::move(response));
  return finding;
}

task::Mismatch mismatch_of(worker::Mismatch response) {
  return {std::move(response.index), cut(std::move(response.expected)),
          cut(std::move(response.got))};
}

task::OutputCheck check_of(worker::OutputCheck response) {
  return {cut(std::move(response.path)),
          cut(std::move(response.problem)),
          cut(std::move(response.detail)),
          response.num_elements.value_or(0),
          response.num_wrong.value_or(0),
          response.error_max.value_or(0),
          response.error_tolerance.value_or(0),
          converted(std::move(response.first_mismatches).value_or(std::vector<worker::Mismatch>()),
                    mismatch_of),
          std::move(response.histogram).value_or(std::map<std::string, int64_t>()),
          cut(std::move(response.diagnosis).value_or(""))};
}

ShapePlan shape_of(worker::Shape response) {
  auto reduction = std::move(response.reduction).value_or(worker::Reduction());
  return {cut(std::move(response.label)),
          std::move(response.constants),
          {std::move(reduction.native), std::move(reduction.used), cut(reduction.reason)}};
}

TrialPlan trial_of(worker::Trial response) {
  return {static_cast<int>(response.index), static_cast<int>(response.shape),
          cut(std::move(response.distribution))};
}

// ---- The device's report

std::string text_of(const Json& object, const char* member) {
  const auto it = object.find(member);
  return it == object.end() || it->is_null() ? "" : cut(it->get<std::string>());
}

std::array<int64_t, 3> triple_of(const Json& object, const char* member) {
  std::array<int64_t, 3> triple{};
  const Json values = object.value(member, Json::array());
  for (size_t i = 0; i < triple.size() && i < values.size(); ++i) {
    triple[i] = values[i].get<int64_t>();
  }
  return triple;
}

task::KernelFinding finding_of(const Json& object, const Locate& locate) {
  task::KernelFinding finding;
  finding.kind = text_of(object, "kind");
  finding.kernel = text_of(object, "kernel").substr(0, 200);
  finding.block = triple_of(object, "block");
  finding.thread = triple_of(object, "thread");
  finding.detail = text_of(object, "detail").substr(0, 600);
  const auto line = object.find("line");
  if (line != object.end() && line->is_number() && line->get<int64_t>() > 0) {
    finding.location = locate(text_of(object, "file"), line->get<uint64_t>(), finding.kernel);
  }
  return finding;
}

}  // namespace

Inspection inspection_of(worker::InspectorInspectResponse response) {
  Inspection inspection;
  if (response.syntax_error) {
    inspection.syntax_error = cut(response.syntax_error->message);
    inspection.syntax_location = location_of(*std::move(response.syntax_error));
  }
  inspection.classes = std::move(response.classes);
  inspection.functions = std::move(response.functions);
  inspection.findings = converted(std::move(response.findings), rule_finding_of);
  inspection.unsupported = converted(std::move(response.unsupported), rule_finding_of);
  inspection.languages = std::move(response.languages);
  inspection.native = response.native;
  return inspection;
}

JudgePlan plan_of(worker::Plan plan) {
  return {converted(std::move(plan.shapes), shape_of),
          converted(std::move(plan.trials), trial_of),
          plan.call_memory,
          plan.needs_general,
          plan.only_moves,
          cut(std::move(plan.mode)),
          {cut(std::move(plan.grade.grade)), converted(std::move(plan.grade.reasons), name_of)}};
}

void take_check(worker::JudgeCheckResponse response, task::Trial& trial) {
  trial.passed = response.passed;
  trial.checks = converted(std::move(response.checks), check_of);
  trial.inputs_mutated = cut(std::move(response.inputs_mutated));
}

task::StateMatch state_of(worker::CandidateBuildThereResponse response) {
  return {converted(std::move(response.missing), name_of),
          converted(std::move(response.unmatched), name_of),
          converted(std::move(response.own), name_of)};
}

worker::CandidateRunResponse bounded(worker::CandidateRunResponse response) {
  std::map<std::string, int64_t> aten;
  for (const auto& [name, count] : response.aten) {
    if (aten.size() < kOpsMax) aten[name_of(name)] = count;
  }
  response.aten = std::move(aten);
  response.sticky = cut(std::move(response.sticky));
  if (response.triton) response.triton->taken = cut(std::move(response.triton->taken));
  return response;
}

namespace {

// Calls `take` with the object of each line of a report.
template <typename Take>
void for_each_line(std::string_view report, Take take) {
  while (!report.empty()) {
    const std::string_view line = report.substr(0, report.find('\n'));
    report.remove_prefix(std::min(line.size() + 1, report.size()));
    if (nests_too_deeply(line)) continue;
    const Json object = Json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    try {
      take(object);
    } catch (const Json::exception&) {
      continue;  // A line of another kind.
    }
  }
}

}  // namespace

std::vector<CallRecord> decode_calls(std::string_view report) {
  std::vector<CallRecord> calls;
  for_each_line(report, [&](const Json& line) {
    CallRecord call;
    call.number = line.at("call").get<int64_t>();
    call.launches = line.at("launches").get<int64_t>();
    call.from_kernels = line.at("kernel").get<int64_t>();
    call.from_fills = line.at("fill").get<int64_t>();
    call.from_inputs = line.at("given").get<int64_t>();
    call.from_host = line.at("host").get<int64_t>();
    call.from_nowhere = line.at("nowhere").get<int64_t>();
    call.kernel_us = line.value("kernel_us", int64_t{0});
    call.sectors = line.value("sectors", int64_t{0});
    call.reads_given = line.at("reads_given").get<bool>();
    call.unknown_reads = line.at("unknown_reads").get<int64_t>();
    calls.push_back(std::move(call));
  });
  return calls;
}

std::vector<task::KernelFinding> decode_findings(std::string_view report, const Locate& locate) {
  std::vector<task::KernelFinding> findings;
  for_each_line(report, [&](const Json& line) {
    if (findings.size() < kItemsMax && line.contains("kind")) {
      findings.push_back(finding_of(line, locate));
    }
  });
  return findings;
}

}  // namespace mc::execute
