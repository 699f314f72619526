// SPDX-License-Identifier: Apache-2.0
#include "execute/sanitizer_report.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <set>
#include <tuple>

#include "core/demangle.h"
#include "core/text.h"

namespace mc::execute {
namespace {

constexpr std::string_view kMark = "=========";
constexpr size_t kTextBytesMax = 300;

struct Entry {
  std::string_view head;
  std::vector<std::string_view> details;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view behind(std::string_view text, std::string_view part) {
  const size_t at = text.find(part);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + part.size());
}

// ---- Entries ------------------------------------------------------------------------------------

// Heads separate the entries; a head is indented by one space after the mark, details by several.
// A line "and Read access at ..." is always a detail.
class Entries {
 public:
  void add(std::string_view line) {
    const size_t at = line.find(kMark);  // The program's own line before it may be unfinished.
    if (at == std::string_view::npos) return;
    line.remove_prefix(at + kMark.size());
    if (line.starts_with('=')) return;
    const bool is_detail = line.starts_with("  ") || line.starts_with(" and ");
    const std::string_view text = trimmed(line);
    if (text.empty()) return;
    if (!is_detail) {
      entries_.push_back({text, {}});
    } else if (!entries_.empty()) {
      entries_.back().details.push_back(text);
    }
  }
  const std::vector<Entry>& all() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

Entries entries_of(std::string_view printed) {
  Entries entries;
  while (!printed.empty()) {
    const std::string_view line = printed.substr(0, printed.find('\n'));
    entries.add(line);
    printed.remove_prefix(std::min(printed.size(), line.size() + 1));
  }
  return entries;
}

// ---- Parts of a line ----------------------------------------------------------------------------

// The kernel in "kernel(float *)+0x70 in a.cu:7", or as older versions wrote it "0x70 in
// kernel(float *)".
std::string kernel_in(std::string_view where) {
  const bool is_old = where.starts_with("0x");
  std::string_view name = is_old ? behind(where, " in ") : where.substr(0, where.find("+0x"));
  if (name.starts_with("_Z")) return demangle(name.substr(0, name.find_first_of(" ([")));
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (const size_t end = name.find('('); end != 0) name = name.substr(0, end);
  return std::string(trimmed(name.substr(0, kTextBytesMax)));
}

// The numbers of the first "(1,2,3)" or "(1, 2, 3)"; zeros where there is none.
std::array<int64_t, 3> triple_in(std::string_view text) {
  std::array<int64_t, 3> numbers{};
  text = behind(text, "(");
  for (int64_t& number : numbers) {
    while (text.starts_with(' ') || text.starts_with(',')) text.remove_prefix(1);
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc()) return {};
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return numbers;
}

// ---- Findings -----------------------------------------------------------------------------------

// True for a detail about threads and addresses; false for the host's call stack.
bool is_told(std::string_view detail) {
  return !detail.starts_with("Saved host backtrace") && !detail.starts_with("Host Frame") &&
         !detail.starts_with("in ") && !detail.starts_with("by thread") &&
         !detail.starts_with("at ") && !detail.starts_with("Device Frame");
}

std::string access_kind(const Entry& entry) {
  const bool is_misaligned = std::ranges::any_of(
      entry.details, [](std::string_view detail) { return contains(detail, "misaligned"); });
  if (is_misaligned) return "misaligned";
  return contains(entry.head, " read ") ? "out_of_bounds_read" : "out_of_bounds_write";
}

// The kind of finding; "" where the entry is not an error of a kernel.
std::string kind_of(const Entry& entry) {
  const std::string_view head = entry.head;
  if (head.starts_with("Invalid __") || head.starts_with("Warp Invalid")) return access_kind(entry);
  if (head.starts_with("Invalid ")) return "sanitizer";
  if (head.starts_with("Error: Race reported") || head.starts_with("Error: Potential ")) {
    return "shared_race";
  }
  if (head.starts_with("Barrier error detected")) return "divergent_barrier";
  if (head.starts_with("Uninitialized __shared__")) return "uninitialised_shared";
  if (!head.starts_with("Program hit ")) return "";
  // Another entry about the kernel, or its trial, has more detail.
  const bool is_launch = contains(head, "cudaErrorInvalidConfiguration") ||
                         contains(head, "cudaErrorLaunchOutOfResources") ||
                         contains(head, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
  if (is_launch) return "launch_error";
  return contains(head, "cudaErrorAssert") ? "device_assert" : "";
}

// True for a read that the compiler widened: it reads a whole vector of shared memory where the
// program reads its beginning, and memcheck reports the bytes beyond the array's end, for example
// 12 of 16.  An access that the program itself makes has a power of two as its size.
bool is_compilers(const Entry& entry) {
  const std::string_view size = behind(entry.head, "Invalid __shared__ read of size ");
  unsigned bytes = 0;
  std::from_chars(size.data(), size.data() + size.size(), bytes);
  return bytes > 0 && !std::has_single_bit(bytes);
}

void note_location(std::string_view detail, task::KernelFinding& finding) {
  if (detail.starts_with("at ") && finding.kernel.empty()) {
    finding.kernel = kernel_in(detail.substr(3));
  } else if (detail.starts_with("by thread ")) {
    finding.thread = triple_in(detail);
    finding.block = triple_in(behind(detail, " in block "));
  } else if (contains(detail, " Thread (") && finding.kernel.empty()) {  // A detail of a hazard.
    finding.thread = triple_in(detail);
    finding.kernel = kernel_in(behind(detail, " at "));
  } else if (detail.starts_with("Device Frame:")) {
    finding.kernel = kernel_in(trimmed(behind(detail, ":")));  // The outermost frame is the kernel.
  }
}

task::KernelFinding finding_of(const Entry& entry, std::string kind) {
  task::KernelFinding finding;
  finding.kind = std::move(kind);
  if (const std::string_view where = behind(entry.head, " access at "); !where.empty()) {
    finding.kernel = kernel_in(where);
  }
  finding.block = triple_in(behind(entry.head, " in block "));
  finding.detail = entry.head;
  for (const std::string_view detail : entry.details) {
    note_location(detail, finding);
    if (is_told(detail)) finding.detail.append("; ").append(detail);
  }
  finding.detail = finding.detail.substr(0, kTextBytesMax);
  return finding;
}

bool is_of_itself(std::string_view head) {
  return head.starts_with("Error: ") || head.starts_with("Internal Sanitizer Error") ||
         head.starts_with("FATAL") || head.starts_with("Unable to");
}

}  // namespace

SanitizerReport parse_sanitizer_report(std::string_view printed) {
  SanitizerReport report;
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  const Entries entries = entries_of(printed);
  for (const Entry& entry : entries.all()) {
    report.has_banner |= entry.head == "COMPUTE-SANITIZER";
    report.has_summary |=
        entry.head.starts_with("ERROR SUMMARY:") || entry.head.starts_with("RACECHECK SUMMARY:");
    const std::string kind = kind_of(entry);
    if (is_compilers(entry)) {
      report.complaint = "it reports a read of shared memory that the compiler made wider";
      continue;
    }
    if (kind.empty()) {
      if (report.complaint.empty() && is_of_itself(entry.head)) {
        report.complaint = entry.head.substr(0, kTextBytesMax);
      }
      continue;
    }
    task::KernelFinding finding = finding_of(entry, kind);
    const bool is_new = seen.insert({kind, finding.kernel, std::string(entry.head)}).second;
    if (is_new && report.findings.size() < kSanitizerFindingsMax) {
      report.findings.push_back(std::move(finding));
    }
  }
  return report;
}

}  // namespace mc::execute
