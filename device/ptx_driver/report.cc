// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/report.h"

#include <array>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/demangle.h"
#include "ptx/origin.h"

namespace mc::ptx_driver {
namespace {

using Json = nlohmann::json;
using ptx::FindingKind;

constexpr size_t kLinesBytesMax = 1 << 18;

// Returns "row" for "_ZZ3sumPfE3row", a function's variable; other symbols are demangled.
std::string array_name(const std::string& symbol) {
  if (!symbol.starts_with("_ZZ")) return demangle(symbol);
  for (size_t at = symbol.size(); at-- > 0;) {
    size_t length = 0, begin = at;
    while (begin < symbol.size() && symbol[begin] >= '0' && symbol[begin] <= '9' && length < 1000) {
      length = 10 * length + static_cast<size_t>(symbol[begin++] - '0');
    }
    if (length > 0 && begin + length == symbol.size()) return symbol.substr(begin);
  }
  return symbol;
}

Json triple(const uint32_t (&three)[3]) { return Json::array({three[0], three[1], three[2]}); }

std::string text_of(const ptx::Finding& finding) {
  std::string text = finding.detail;
  if (!finding.instruction.empty()) text = finding.instruction + ": " + text;
  if (!finding.array.empty()) text = "\"" + array_name(finding.array) + "\": " + text;
  if (finding.other) {
    const auto& [block, thread] = *finding.other;
    text += "; the other thread is (" + std::to_string(thread[0]) + "," +
            std::to_string(thread[1]) + "," + std::to_string(thread[2]) + ") of block (" +
            std::to_string(block[0]) + "," + std::to_string(block[1]) + "," +
            std::to_string(block[2]) + ")";
  }
  return text;
}

}  // namespace

std::string text_of_line(const Json& line) {
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void Report::add(const ptx::Finding& finding) {
  if (finding.kind == FindingKind::kUnsupported)
    return add_unsupported(finding.kernel, finding.detail);
  const std::string_view kind = name_of(finding.kind);
  Json line{{"kind", kind},
            {"kernel", demangle(finding.kernel)},
            {"file", finding.file},
            {"line", finding.line},
            {"detail", text_of(finding)}};
  const uint64_t caller = finding.line == 0 ? location_.load() : 0;
  if (caller != 0) line["place"] = caller;
  if (finding.thread) {
    line["block"] = triple(finding.thread->block);
    line["thread"] = triple(finding.thread->thread);
  }
  const std::lock_guard lock(mutex_);
  // All reads of unwritten bytes in one line are one finding.
  const std::string_view detail =
      finding.kind == FindingKind::kUnwrittenGlobal ? "" : std::string_view(finding.detail);
  const std::string key = std::string(kind) + " " + finding.kernel + " " + finding.file + ":" +
                          std::to_string(finding.line) + " " + std::to_string(caller) + " " +
                          std::string(detail);
  if (seen_.insert(key).second) add_line(text_of_line(line));
}

void CallRecord::add(uint8_t origins, uint64_t bytes) {
  uint64_t& maker = (origins & ptx::kByHost) != 0     ? by_host
                    : (origins & ptx::kByKernel) != 0 ? by_kernels
                    : (origins & ptx::kGiven) != 0    ? given
                    : (origins & ptx::kByFill) != 0   ? by_fills
                                                      : by_none;
  maker += bytes;
}

void Report::add(const CallRecord& record) {
  MC_CHECK(record.number > 0);
  const Json line{{"call", record.number},
                  {"launches", record.launches},
                  {"kernel_us", record.kernel_us},
                  {"sectors", record.sectors},
                  {"kernel", record.by_kernels},
                  {"fill", record.by_fills},
                  {"given", record.given},
                  {"host", record.by_host},
                  {"nowhere", record.by_none},
                  {"unknown_reads", 0},
                  {"reads_given", record.reads_given}};
  const std::lock_guard lock(mutex_);
  add_line(text_of_line(line));
}

void Report::add_unsupported(const std::string& kernel, const std::string& detail) {
  const Json line{{"kind", "unsupported"}, {"kernel", demangle(kernel)}, {"detail", detail}};
  const std::lock_guard lock(mutex_);
  add_line(text_of_line(line));
}

void Report::add_line(std::string line) {
  if (lines_.size() + line.size() < kLinesBytesMax) lines_ += line + "\n";
}

std::string Report::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lines_, "");
}

void Report::forget() {
  const std::lock_guard lock(mutex_);
  lines_.clear();
  seen_.clear();
}

}  // namespace mc::ptx_driver
