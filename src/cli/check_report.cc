// SPDX-License-Identifier: Apache-2.0
#include "cli/check_report.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/commands.h"
#include "reward/hints.h"
#include "task/verdict.h"

namespace mc::cli {
namespace {

using Json = nlohmann::json;

double quotient(uint64_t of, uint64_t by) {
  return by == 0 ? 0 : static_cast<double>(of) / static_cast<double>(by);
}

// The counts of the kernels, with derived figures.
Json profile_of(const std::string& lines) {
  Json profile = Json::array();
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    Json one = Json::parse(line, nullptr, false);
    if (!one.is_object()) continue;
    uint64_t sectors = 0;
    for (const char* kind : {"loads", "stores", "atomics"}) {
      Json& requests = one[kind];
      sectors += requests["sectors"].get<uint64_t>();
      requests["sectors_per_request"] = quotient(requests["sectors"], requests["requests"]);
    }
    one["sectors"] = sectors;
    one["bank_conflicts"] = quotient(one["shared_passes"], one["shared_passes_least"]);
    one["lanes_per_instruction"] = quotient(one["lanes"], one["instructions"]);
    profile.push_back(std::move(one));
  }
  return profile;
}

std::string triple(const Json& three) {
  return fmt::format("({})", fmt::join(three.get<std::vector<int64_t>>(), ","));
}

// True if the finding does not belong to a thread of a kernel.
bool is_of_host(const Json& finding) {
  const std::string kind = finding["kind"], kernel = finding["kernel"];
  return kernel.starts_with('[') || kind == "stream_race" || kind == "launch_error";
}

void print_finding(const Json& one) {
  const std::string file = one["file"];
  const std::string place =
      file.empty() ? "" : fmt::format("{}:{}: ", file, one["line"].get<int>());
  fmt::print("{}{} in {}\n", place, one["kind"].get<std::string>(),
             one["kernel"].get<std::string>());
  const std::string thread =
      is_of_host(one)
          ? ""
          : fmt::format("block {}, thread {}: ", triple(one["block"]), triple(one["thread"]));
  fmt::print("    {}{}\n", thread, one["detail"].get<std::string>());
  const std::string hint = one["hint"];
  if (!hint.empty()) fmt::print("    hint: {}\n", hint);
}

std::string figure(const Json& number) {
  return number == 0 ? "-" : fmt::format("{:.1f}", number.get<double>());
}

// Prints 32-byte sectors for each global-memory access of a warp, and passes for each shared-memory
// access.
void print_profile(const Json& profile) {
  fmt::print("{:<24} {:>8} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7} {:>6} {:>9}\n", "kernel",
             "launches", "threads", "sectors", "a load", "a store", "atomic", "a pass", "lanes",
             "occupancy");
  for (const Json& one : profile) {
    fmt::print("{:<24} {:>8} {:>10} {:>10} {:>7} {:>7} {:>7} {:>7} {:>6} {:>8.0f}%\n",
               one["kernel"].get<std::string>(), one["launches"].get<uint64_t>(),
               one["threads"].get<uint64_t>(), one["sectors"].get<uint64_t>(),
               figure(one["loads"]["sectors_per_request"]),
               figure(one["stores"]["sectors_per_request"]),
               figure(one["atomics"]["sectors_per_request"]), figure(one["bank_conflicts"]),
               figure(one["lanes_per_instruction"]), 100 * one["occupancy"].get<double>());
  }
}

}  // namespace

Json check_report(const check::Checked& checked) {
  Json findings = Json::array();
  for (const task::KernelFinding& one : checked.findings) {
    findings.push_back({{"kind", one.kind},
                        {"kernel", one.kernel},
                        {"file", one.location.source},
                        {"line", one.location.line},
                        {"block", one.block},
                        {"thread", one.thread},
                        {"detail", one.detail},
                        {"hint", reward::kernel_hint(one.kind)}});
  }
  return {{"schema", "musacoder-check/1"},          {"findings", findings},
          {"unsupported", checked.unsupported},     {"launches", checked.launches},
          {"profile", profile_of(checked.profile)}, {"ending", sandbox::describe(checked.ending)}};
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string counted(size_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : what.ends_with('h') ? "es" : "s");
}

void print_check_report(const Json& report, std::string_view ended) {
  for (const Json& finding : report["findings"]) print_finding(finding);
  if (!report["profile"].empty()) print_profile(report["profile"]);
  for (const std::string what : report["unsupported"]) {
    fmt::print(stderr, "musacoder: not checked to its end, for what the device lacks: {}\n", what);
  }
  fmt::print("== {} in {}; {}\n", counted(report["findings"].size(), "finding"),
             counted(report["launches"], "launch"), ended);
}

Json sarif_of(const Json& report) {
  Json rules = Json::array(), results = Json::array();
  std::set<std::string> kinds;
  for (const Json& one : report["findings"]) {
    const std::string kind = one["kind"], hint = one["hint"], file = one["file"];
    if (kinds.insert(kind).second) {
      rules.push_back({{"id", kind}, {"shortDescription", {{"text", hint.empty() ? kind : hint}}}});
    }
    const std::string text = fmt::format("{} in {}: {}", kind, one["kernel"].get<std::string>(),
                                         one["detail"].get<std::string>());
    Json result = {{"ruleId", kind}, {"level", "error"}, {"message", {{"text", text}}}};
    const Json region = {{"startLine", std::max(1, one["line"].get<int>())}};
    if (!file.empty()) {
      result["locations"] = {
          {{"physicalLocation",
            {{"artifactLocation", {{"uri", (file[0] == '/' ? "file://" : "") + file}}},
             {"region", region}}}}};
    }
    results.push_back(std::move(result));
  }
  const Json driver = {{"name", "musacoder check"}, {"rules", rules}};
  return {{"version", "2.1.0"},
          {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"runs", {{{"tool", {{"driver", driver}}}, {"results", results}}}}};
}

int check_exit_code(const Json& report, bool is_done) {
  if (!report["findings"].empty()) return kExitFound;
  if (!report["unsupported"].empty()) return kExitInput;
  return is_done ? kExitDone : kExitMachine;
}

Json merged_report(const std::vector<Json>& reports) {
  Json whole = {{"schema", "musacoder-check/1"},
                {"findings", Json::array()},
                {"unsupported", Json::array()},
                {"launches", 0},
                {"profile", Json::array()}};
  std::set<std::string> seen;
  for (const Json& one : reports) {
    whole["launches"] = whole["launches"].get<int64_t>() + one["launches"].get<int64_t>();
    for (const Json& kernel : one["profile"]) whole["profile"].push_back(kernel);
    for (const Json& finding : one["findings"]) {
      const Json place = {finding["kind"], finding["kernel"], finding["file"], finding["line"]};
      if (seen.insert(place.dump()).second) whole["findings"].push_back(finding);
    }
    for (const Json& what : one["unsupported"]) {
      if (seen.insert(what.dump()).second) whole["unsupported"].push_back(what);
    }
  }
  return whole;
}

}  // namespace mc::cli
