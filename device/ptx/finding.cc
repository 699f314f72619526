// SPDX-License-Identifier: Apache-2.0
#include "ptx/finding.h"

#include "ptx/finding_log.h"

namespace mc::ptx {
namespace {

constexpr size_t kFindingsMax = 1000;
constexpr size_t kPrintedMax = 1 << 20;

std::string triple(const uint32_t (&three)[3]) {
  return "(" + std::to_string(three[0]) + "," + std::to_string(three[1]) + "," +
         std::to_string(three[2]) + ")";
}

std::string describe(const ThreadPlace& place) {
  return "thread " + triple(place.thread) + " of block " + triple(place.block);
}

}  // namespace

std::string_view name_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kSharedRace:
      return "shared_race";
    case FindingKind::kGlobalRace:
      return "global_race";
    case FindingKind::kUnwrittenShared:
      return "unwritten_shared";
    case FindingKind::kShuffleSource:
      return "shuffle_source";
    case FindingKind::kOutOfBoundsRead:
      return "out_of_bounds_read";
    case FindingKind::kOutOfBoundsWrite:
      return "out_of_bounds_write";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kDivergentBarrier:
      return "divergent_barrier";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kTrap:
      return "trap";
    case FindingKind::kAssertion:
      return "assertion";
    case FindingKind::kBadCall:
      return "bad_call";
    case FindingKind::kStepLimit:
      return "step_limit";
    case FindingKind::kStackLimit:
      return "stack_limit";
    case FindingKind::kLaunchLimit:
      return "launch_limit";
  }
  return "";
}

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
