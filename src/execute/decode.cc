// SPDX-License-Identifier: Apache-2.0
#include "execute/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "worker/protocol.h"

namespace mc::execute {
namespace {

using Json = nlohmann::json;

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

task::Place place_of(const Json& object) {
  std::string source = text_of(object, "source");
  if (source.empty()) source = "candidate";
  return {source, static_cast<int>(number_of(object, "line")),
          static_cast<int>(number_of(object, "column")), text_of(object, "text").substr(0, 200)};
}

// Runs `decode` and turns nlohmann's exceptions into a protocol error.
template <typename T, typename Decode>
Result<T> guarded(std::string_view answer, const Decode& decode) {
  try {
    return decode(Json::parse(answer));
  } catch (const Json::exception& failure) {
    return Error{ErrorCode::kProtocol, std::string("malformed answer: ") + failure.what()};
  }
}

constexpr size_t kOpsMax = 256;

// JSON has no NaN and no infinity; they come as text.
double real_of(const Json& object, const char* member) {
  const auto it = object.find(member);
  if (it == object.end() || it->is_null()) return 0;
  if (!it->is_string()) return it->get<double>();
  const auto text = it->get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::nan("");
}

std::map<std::string, int64_t> numbers_of(const Json& object, const char* member) {
  const auto it = object.find(member);
  if (it == object.end() || it->is_null()) return {};
  return it->get<std::map<std::string, int64_t>>();
}

task::OutputCheck check_of(const Json& object) {
  task::OutputCheck check;
  check.path = text_of(object, "path");
  check.problem = text_of(object, "problem");
  check.detail = text_of(object, "detail");
  check.num_elements = number_of(object, "num_elements");
  check.num_wrong = number_of(object, "num_wrong");
  check.error_max = real_of(object, "error_max");
  check.error_tolerance = real_of(object, "error_tolerance");
  for_each_item(object, "first_mismatches", [&](const Json& item) {
    check.first_mismatches.push_back({item.value("index", std::vector<int64_t>{}),
                                      text_of(item, "expected"), text_of(item, "got")});
  });
  check.histogram = numbers_of(object, "histogram");
  return check;
}

task::Reduction reduction_of(const Json& shape) {
  const auto it = shape.find("reduction");
  if (it == shape.end() || it->is_null()) return {};
  return {numbers_of(*it, "native"), numbers_of(*it, "used"), text_of(*it, "reason")};
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
  const auto pc = object.find("pc");
  if (pc != object.end() && pc->is_number()) {
    finding.place = locate(text_of(object, "module"), pc->get<uint64_t>());
  }
  if (const auto other = object.find("other_pc"); other != object.end() && other->is_number()) {
    const auto other_pc = other->get<uint64_t>();
    if (other_pc != 0) finding.other = locate(text_of(object, "module"), other_pc);
  }
  return finding;
}

}  // namespace

Result<InspectorAnswer> decode_inspection(std::string_view answer) {
  return guarded<InspectorAnswer>(answer, [](const Json& json) {
    InspectorAnswer inspection;
    if (const auto it = json.find("syntax_error"); it != json.end() && it->is_object()) {
      inspection.syntax_error = text_of(*it, "message");
      inspection.syntax_place = place_of(*it);
    }
    inspection.classes = json.value("classes", std::vector<std::string>{});
    inspection.functions = json.value("functions", std::vector<std::string>{});
    const auto read = [&](const char* list, std::vector<task::RuleFinding>& found) {
      for_each_item(json, list, [&](const Json& item) {
        found.push_back({text_of(item, "rule"), text_of(item, "message"), place_of(item)});
      });
    };
    read("findings", inspection.findings);
    read("unsupported", inspection.unsupported);
    return inspection;
  });
}

Result<JudgePlan> decode_plan(std::string_view answer) {
  return guarded<JudgePlan>(answer, [](const Json& json) {
    JudgePlan plan;
    for_each_item(json, "shapes", [&](const Json& shape) {
      plan.shapes.push_back(
          {text_of(shape, "label"), numbers_of(shape, "constants"), reduction_of(shape)});
    });
    for_each_item(json, "trials", [&](const Json& trial) {
      plan.trials.push_back({static_cast<int>(number_of(trial, "index")),
                             static_cast<int>(number_of(trial, "shape")),
                             text_of(trial, "distribution")});
    });
    plan.call_bytes = json.at("call_bytes").get<double>();
    plan.needs_general = json.at("needs_general").get<bool>();
    return plan;
  });
}

Status decode_check(std::string_view answer, task::Trial& trial) {
  return guarded<Nothing>(answer, [&](const Json& json) {
    trial.passed = json.at("passed").get<bool>();
    for_each_item(json, "checks",
                  [&](const Json& check) { trial.checks.push_back(check_of(check)); });
    trial.inputs_mutated = text_of(json, "inputs_mutated");
    return Nothing{};
  });
}

Result<task::StateMatch> decode_state(std::string_view answer) {
  MC_TRY(auto said, worker::ContestantBuildAnswer::from_json(answer), "build");
  for (std::vector<std::string>* names : {&said.missing, &said.unmatched, &said.own}) {
    constexpr size_t kNameBytesMax = 200;
    names->resize(std::min(names->size(), kItemsMax));
    for (std::string& name : *names) name.resize(std::min(name.size(), kNameBytesMax));
  }
  return task::StateMatch{std::move(said.missing), std::move(said.unmatched), std::move(said.own)};
}

Result<RunAnswer> decode_run(std::string_view answer) {
  MC_TRY(const auto said, worker::ContestantRunAnswer::from_json(answer), "run");
  RunAnswer run;
  for (const auto& [name, count] : said.aten) {
    if (run.aten.size() >= kOpsMax) break;
    run.aten[name.substr(0, 200)] = count;
  }
  run.launches = said.launches;
  run.sticky = said.sticky.substr(0, kTextBytesMax);
  Json buffers = Json::array();
  for (const worker::NamedTree& buffer : said.buffers) {
    buffers.push_back({{"name", buffer.name}, {"tree", Json::parse(buffer.tree.json)}});
  }
  const Json fields{{"outputs", Json::parse(said.outputs.json)}, {"buffers", std::move(buffers)}};
  run.check_fields = fields.dump(-1, ' ', false, Json::error_handler_t::replace);
  return run;
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
    call.digest = line.at("digest").get<std::string>();
    call.from_kernels = line.at("kernel").get<int64_t>();
    call.from_inputs = line.at("given").get<int64_t>();
    call.from_host = line.at("host").get<int64_t>();
    call.from_nowhere = line.at("nowhere").get<int64_t>();
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
