// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dialect.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "legality/extract.h"
#include "musify/port.h"
#include "task/verdict_fields.h"

namespace mc::eval {
namespace {

constexpr std::size_t kFindingsMax = 32;
constexpr std::size_t kExcerptBytesMax = 200;
constexpr std::string_view kExclusion = "MUSIFY_EXCL";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    start = end + 1;
  }
  return lines;
}

// Empty for a line that does not exist.
std::string excerpt_of(const std::vector<std::string_view>& lines, std::size_t line) {
  if (line < 1 || line > lines.size()) return "";
  return std::string(lines[line - 1].substr(0, kExcerptBytesMax));
}

task::SourceLocation location_of(const musify::Location& place,
                                 const std::vector<std::string_view>& lines) {
  return {"candidate", static_cast<int>(place.line), static_cast<int>(place.column),
          excerpt_of(lines, place.line)};
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n,\"<>'\\";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The words that the port to MUSA would change are no words of MUSA.
std::vector<task::Diagnostic> unported_words(const musify::Port& port,
                                             const std::vector<std::string_view>& lines) {
  std::vector<task::Diagnostic> found;
  for (const musify::Finding& refusal : port.refusals) {
    found.push_back({"error", fmt::format("{} (dialect.{})", refusal.message, refusal.rule),
                     location_of(refusal.location, lines)});
  }
  std::set<std::string> seen;
  for (const musify::Change& change : port.changes) {
    const std::string word = trimmed(change.before);
    if (word.empty() || !seen.insert(word).second) continue;  // An addition has no word.
    const std::string after = trimmed(change.after);
    const std::string message =
        after.empty() ? fmt::format("\"{}\" is of CUDA and has no counterpart on MUSA", word)
                      : fmt::format("\"{}\" is of CUDA; MUSA has \"{}\"", word, after);
    found.push_back({"error", message + " (dialect.cuda)", location_of(change.location, lines)});
  }
  if (found.size() > kFindingsMax) found.resize(kFindingsMax);
  return found;
}

task::Unsupported unknown_names(const std::vector<musify::Finding>& remnants,
                                const std::vector<std::string_view>& lines) {
  task::Unsupported unsupported;
  for (const musify::Finding& remnant : remnants) {
    if (unsupported.constructs.size() == kFindingsMax) break;
    unsupported.constructs.push_back({"dialect.unknown", remnant.message + " of the port to CUDA",
                                      location_of(remnant.location, lines)});
  }
  return unsupported;
}

// Visits the fields of a verdict.  Only members that hold prose have names to be changed.
class Restorer {
 public:
  Restorer(const musify::Rules& to_musa, const std::vector<std::string_view>& lines)
      : to_musa_(to_musa), lines_(lines) {}

  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (is_prose(name)) value = musify::port_message(value, to_musa_);
    } else {
      restore(value);
    }
  }

 private:
  static bool is_prose(std::string_view name) {
    static const std::set<std::string_view> kProse = {"message", "detail", "output_tail"};
    return kProse.contains(name);
  }

  void restore(task::SourceLocation& location) {
    if (location.source == "candidate") {
      const auto line = static_cast<std::size_t>(std::max(location.line, 0));
      if (!location.excerpt.empty()) location.excerpt = excerpt_of(lines_, line);
      return;
    }
    location.source = musify::port_message(location.source, to_musa_);
    location.excerpt = musify::port_message(location.excerpt, to_musa_);
  }
  void restore(task::Outcome& outcome) {
    std::visit([this](auto& value) { task::fields(*this, value); }, outcome);
  }
  template <typename T>
  void restore(std::vector<T>& values) {
    if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      for (T& value : values) restore(value);
    }
  }
  template <typename T>
  void restore(std::optional<T>& value) {
    if (value) restore(*value);
  }
  template <typename Key, typename Value>
  void restore(std::map<Key, Value>&) {}
  template <typename T>
  void restore(T& value) {
    if constexpr (requires { task::fields(*this, value); }) task::fields(*this, value);
  }

  const musify::Rules& to_musa_;
  const std::vector<std::string_view>& lines_;
};

bool is_for_musa_alone(const std::string& flag) {
  static constexpr const char* kPatterns[] = {
      "--offload-arch=*", "--cuda-gpu-arch=*", "-mtgpu*",    "-Od*",   "-fmusa-*",
      "-mathx-*",         "-fsigned-char",     "-U__CUDA__", "-mllvm", "-x"};
  return std::ranges::any_of(kPatterns,
                             [&](const char* pattern) { return musify::matches(pattern, flag); });
}

std::string nvcc_flag(const std::string& flag) {
  if (flag == "-ffast-math") return "--use_fast_math";
  const bool is_of_host =
      flag.starts_with("-f") || flag.starts_with("-W") || flag.starts_with("-m");
  return is_of_host ? "-Xcompiler=" + flag : flag;
}

}  // namespace

MusaDialect::MusaDialect(musify::Rules to_musa, musify::Rules to_cuda)
    : to_musa_(std::move(to_musa)), to_cuda_(std::move(to_cuda)) {}

Result<MusaDialect> MusaDialect::create(const std::filesystem::path& folder) {
  MC_TRY(musify::Rules to_musa, musify::load_rules(folder, musify::Target::kMusa), "dialect");
  MC_TRY(musify::Rules to_cuda, musify::load_rules(folder, musify::Target::kCuda), "dialect");
  return MusaDialect(std::move(to_musa), std::move(to_cuda));
}

std::variant<std::string, task::Outcome> MusaDialect::port(std::string_view module,
                                                           const std::string& architecture) const {
  const std::vector<std::string_view> lines = lines_of(module);
  if (const std::size_t at = module.find(kExclusion); at != std::string_view::npos) {
    const auto line = static_cast<std::size_t>(
        std::count(module.begin(), module.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    return task::CompileFailed{
        {{"error", "marks of musify that exclude lines are not for candidates (dialect.cuda)",
          location_of({line + 1, 1}, lines)}}};
  }
  musify::PortOptions options{.architecture = architecture, .lines = musify::Lines::kStay};
  std::vector<task::Diagnostic> unported = unported_words(
      musify::port_source(module, musify::Language::kPython, to_musa_, options), lines);
  if (!unported.empty()) return task::CompileFailed{std::move(unported)};
  options.project.names = {"__MUSA_ARCH__", "__MUSACC__", "__MUSA__"};  // musa_prelude has them.
  musify::Port port = musify::port_source(module, musify::Language::kPython, to_cuda_, options);
  if (!port.remnants.empty()) return unknown_names(port.remnants, lines);
  return std::move(port.text);
}

void MusaDialect::restore(task::Verdict& verdict, const task::Candidate& candidate) const {
  if (verdict.protocol.dialect != task::Dialect::kMusa) return;
  const legality::Extraction extraction = legality::extract(candidate.answer);
  const auto* extracted = std::get_if<legality::Extracted>(&extraction);
  if (extracted == nullptr) return;
  const std::vector<std::string_view> lines = lines_of(extracted->module);
  Restorer restorer(to_musa_, lines);
  restorer("outcome", verdict.outcome);
  restorer("telemetry", verdict.telemetry);
}

std::vector<std::string> nvcc_flags(const std::vector<std::string>& mcc_flags) {
  std::vector<std::string> flags;
  bool is_value = false;  // True for the value of a flag that is left out.
  for (const std::string& item : mcc_flags) {
    std::istringstream words(item);
    for (std::string flag; words >> flag;) {
      const bool is_left_out = is_value || is_for_musa_alone(flag);
      is_value = !is_value && (flag == "-mllvm" || flag == "-x");
      if (!is_left_out) flags.push_back(nvcc_flag(flag));
    }
  }
  return flags;
}

int warp_threads(task::Dialect dialect, std::string_view musa_architecture) {
  const bool is_wide = musa_architecture == "mp_21" || musa_architecture == "mp_22";
  return dialect == task::Dialect::kMusa && is_wide ? 128 : 32;
}

std::string musa_prelude(const std::string& architecture) {
  const std::string digits = architecture.substr(architecture.find('_') + 1);
  return fmt::format(
      "#define __MUSACC__ 1\n"
      "#define __MUSA__ 1\n"
      "#ifdef __CUDA_ARCH__\n"
      "#define __MUSA_ARCH__ {}0\n"
      "#endif\n"
      "#define __syncthreads_lm() __syncthreads()\n",
      digits);
}

}  // namespace mc::eval
