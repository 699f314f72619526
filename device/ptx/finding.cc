// SPDX-License-Identifier: Apache-2.0
#include "ptx/finding.h"

#include "core/check.h"
#include "ptx/finding_log.h"

namespace mc::ptx {
namespace {

constexpr size_t kFindingsMax = 1000;
constexpr size_t kPrintedMax = 1 << 20;
// The names are in the order of FindingKind.
constexpr std::string_view kNames[] = {
    "shared_race",        "global_race",         "stream_race",          "host_race",
    "host_access",        "uninitialised_copy",  "uninitialised_shared", "uninitialised_global",
    "deadlock",  // kShuffleSource
    "out_of_bounds_read", "out_of_bounds_write", "misaligned",           "divergent_barrier",
    "deadlock",       // kDeadlock
    "device_assert",  // kTrap
    "device_assert",  // kAssertion
    "device_assert",  // kBadCall
    "step_limit",
    "device_assert",  // kStackLimit
    "launch_error",   // kLaunchLimit
    "unsupported",
};
static_assert(std::size(kNames) == static_cast<size_t>(FindingKind::kUnsupported) + 1);

std::string triple(const uint32_t (&three)[3]) {
  return "(" + std::to_string(three[0]) + "," + std::to_string(three[1]) + "," +
         std::to_string(three[2]) + ")";
}

std::string describe(const ThreadPosition& position) {
  return "thread " + triple(position.thread) + " of block " + triple(position.block);
}

}  // namespace

std::string_view name_of(FindingKind kind) { return kNames[static_cast<size_t>(kind)]; }

bool ends_launch(FindingKind kind) { return kind >= FindingKind::kOutOfBoundsRead; }

std::string describe(const Finding& finding) {
  std::string text(name_of(finding.kind));
  text += ": kernel " + finding.kernel;
  const std::string file = finding.file.substr(finding.file.rfind('/') + 1);
  if (!file.empty()) text += ", " + file + ":" + std::to_string(finding.line);
  if (!finding.instruction.empty()) text += ", " + finding.instruction;
  if (!finding.array.empty()) text += ", array \"" + finding.array + '"';
  text += ": " + finding.detail;
  if (finding.thread) text += "; " + describe(*finding.thread);
  if (finding.other) text += ", " + describe(*finding.other);
  if (finding.count > 1) text += "; " + std::to_string(finding.count) + " times";
  return text;
}

void FindingLog::add(Finding finding) {
  MC_CHECK(finding.count == 1);
  Key key(finding.file, finding.line, finding.kind, finding.instruction, finding.array,
          finding.detail);
  const auto found = findings_.find(key);
  if (found != findings_.end()) {
    ++found->second.count;
  } else if (findings_.size() < kFindingsMax) {
    findings_.emplace(std::move(key), std::move(finding));
  }
}

void FindingLog::print(std::string_view text) {
  if (printed_.size() < kPrintedMax) printed_ += text.substr(0, kPrintedMax - printed_.size());
}

std::vector<Finding> FindingLog::findings() const {
  std::vector<Finding> all;
  for (const auto& [key, finding] : findings_) all.push_back(finding);
  return all;
}

}  // namespace mc::ptx
