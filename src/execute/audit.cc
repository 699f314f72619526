// SPDX-License-Identifier: Apache-2.0
#include "execute/audit.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "execute/sanitizer_report.h"
#include "sandbox/run.h"

namespace mc::execute {
namespace {

using Json = nlohmann::json;

constexpr size_t kOutputBytesMax = size_t{2} << 20;
constexpr size_t kDetailBytesMax = 300;
constexpr size_t kKernelsMax = 64;  // Each is a word of the command line.
constexpr int64_t kMemoryBytes = int64_t{32} << 30;
constexpr int64_t kTmpBytes = int64_t{2} << 30;
constexpr int kThreadsMax = 512;
constexpr uint64_t kFilesMax = 4096;
constexpr std::string_view kCannot = "audit: cannot: ";
constexpr std::string_view kDone = "audit: done, ";
constexpr std::string_view kLoad = "audit: load: ";

// ---- The command --------------------------------------------------------------------------------

std::string request_of(const AuditOptions& options, const AuditSubject& subject) {
  Json artifacts = Json::object();
  for (const Library& library : subject.program.libraries) {
    artifacts[library.key] = {{"path", library.path.string()}, {"module", library.module}};
  }
  const Json request{{"task", subject.task_source},
                     {"source", subject.program.source},
                     {"artifacts", std::move(artifacts)},
                     {"seed", subject.seed},
                     {"device", options.device},
                     {"aten", options.aten.string()},
                     {"mode", subject.mode},
                     {"precision", subject.precision}};
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Failed driver calls are not reported, because PyTorch probes for features that a driver may lack.
// Mangled names contain no spaces, so they can be parsed again.  The time limit for attaching
// includes PyTorch's start from a cold disk.
std::vector<std::string> sanitizer_flags(SanitizerTool tool, const AuditSubject& subject) {
  std::vector<std::string> flags = {"--tool", name_of(tool), "--error-exitcode",
                                    std::to_string(kErrorsFound)};
  flags.insert(flags.end(), {"--print-limit", "32", "--launch-timeout", "120", "--demangle", "no",
                             "--show-backtrace", "device"});
  if (tool == SanitizerTool::kMemcheck) {
    flags.insert(flags.end(), {"--report-api-errors", "no"});
  } else if (tool == SanitizerTool::kRacecheck) {
    flags.insert(flags.end(), {"--racecheck-detect-level", "error"});
  }
  if (subject.kernels.size() > kKernelsMax) return flags;
  for (const std::string& kernel : subject.kernels) {
    flags.insert(flags.end(), {"--kernel-name", "kernel_name=" + kernel});
  }
  return flags;
}

// The sandbox empties these folders, so their files must be mounted; all other files are readable.
// Nothing more is mounted, because it may contain what the sandbox hides.
bool is_below_tmp(const std::filesystem::path& path) {
  return path.string().starts_with("/tmp/") || path.string().starts_with("/var/tmp/");
}

void show_home_of(const std::filesystem::path& program, sandbox::Profile& profile) {
  const std::filesystem::path home = program.parent_path().parent_path();
  if (is_below_tmp(home)) profile.visible.push_back(home.string());
}

sandbox::Profile profile_of(const AuditOptions& options,
                            const std::filesystem::path& question_folder) {
  sandbox::Profile profile = sandbox::program_profile();
  const ChildLimits& child = options.child;
  profile.allow_sockets = true;  // The front end and its target communicate through sockets.
  profile.devices = child.devices;
  profile.visible = child.visible;
  show_home_of(options.sanitizer, profile);
  show_home_of(options.python, profile);
  profile.visible.push_back(question_folder.string());
  const auto seconds = static_cast<int64_t>(std::ceil(options.wall_s));
  profile.limits.cpu = std::chrono::seconds(seconds);
  profile.limits.wall = std::chrono::milliseconds(std::llround(options.wall_s * 1000));
  profile.limits.memory_bytes = static_cast<uint64_t>(std::max(child.memory_bytes, kMemoryBytes));
  profile.limits.tmp_bytes = static_cast<uint64_t>(std::max(child.tmp_bytes, kTmpBytes));
  profile.limits.threads_max = static_cast<uint64_t>(std::max(child.threads_max, kThreadsMax));
  profile.limits.files_max = kFilesMax;
  return child.weak_sandbox ? sandbox::lenient(std::move(profile)) : profile;
}

// PyTorch's caching allocator is switched off, so that each tensor ends where its allocation does.
std::vector<std::string> environment_of(const AuditOptions& options) {
  std::vector<std::string> variables = {"PATH=/usr/local/bin:/usr/bin:/bin",
                                        "HOME=/tmp",
                                        "TMPDIR=/tmp",
                                        "LC_ALL=C.UTF-8",
                                        "USER=musacoder",
                                        "PYTHONHASHSEED=0",
                                        "PYTHONDONTWRITEBYTECODE=1",
                                        "PYTHONUNBUFFERED=1",
                                        "PYTORCH_NO_CUDA_MEMORY_CACHING=1"};
  std::ranges::copy(options.environment, std::back_inserter(variables));
  return variables;
}

// ---- The result ---------------------------------------------------------------------------------

// The rest of the last line that begins with `beginning`; "" where there is none.
std::string last_line(std::string_view printed, std::string_view beginning) {
  size_t at = printed.rfind(beginning);
  while (at != std::string_view::npos && at > 0 && printed[at - 1] != '\n') {
    at = printed.rfind(beginning, at - 1);
  }
  if (at == std::string_view::npos) return "";
  const std::string_view rest = printed.substr(at + beginning.size());
  return std::string(rest.substr(0, std::min(rest.find('\n'), kDetailBytesMax)));
}

std::string end_of(std::string_view printed) {
  while (printed.ends_with('\n')) printed.remove_suffix(1);
  const size_t begin = printed.rfind('\n');
  printed = begin == std::string_view::npos ? printed : printed.substr(begin + 1);
  return std::string(printed.substr(0, kDetailBytesMax));
}

// The reason why the run is not clean; "" where it is complete and without findings.
std::string why_not_clean(const SanitizerReport& report, const AuditRun& run) {
  if (const std::string why = last_line(run.printed, kCannot); !why.empty()) return why;
  if (!report.complaint.empty()) return report.complaint;
  if (!report.has_banner) return "compute-sanitizer does not start: " + end_of(run.printed);
  if (run.exit_code != 0) return run.ending + ": " + end_of(run.printed);
  const std::string done = last_line(run.printed, kDone);
  if (done.empty() || !report.has_summary) return "it ended before its end: " + end_of(run.printed);
  if (!done.starts_with("0 ")) return "";
  const std::string why = last_line(run.printed, kLoad);
  return "the candidate runs at none of the audit's sizes" + (why.empty() ? "" : ": " + why);
}

// True if the front end found something that cannot be parsed: the candidate overwrote it, or the
// format is new.
bool is_found_but_unread(const SanitizerReport& report, const AuditRun& run) {
  return run.exit_code == kErrorsFound && (report.complaint.empty() || run.is_truncated);
}

}  // namespace

const char* name_of(SanitizerTool tool) {
  // The names in the order of the enumerators.
  constexpr std::array<const char*, kSanitizerTools.size()> kNames = {"memcheck", "racecheck",
                                                                      "synccheck"};
  const auto index = static_cast<size_t>(tool);
  MC_CHECK(index < kNames.size());
  return kNames[index];
}

AuditEnd conclude_audit(SanitizerTool tool, const AuditRun& run) {
  SanitizerReport report = parse_sanitizer_report(run.printed);
  if (report.findings.empty() && is_found_but_unread(report, run)) {
    report.findings.push_back({"sanitizer", "", {}, {}, "it reports errors", {}});
  }
  if (!report.findings.empty()) {
    for (task::KernelFinding& finding : report.findings) {
      finding.detail = std::string("compute-sanitizer ") + name_of(tool) + ": " + finding.detail;
    }
    return {{name_of(tool), "findings", ""}, std::move(report.findings)};
  }
  const std::string why = why_not_clean(report, run);
  return {{name_of(tool), why.empty() ? "clean" : "not_run", why}, {}};
}

Result<AuditEnd> audit(SanitizerTool tool, const AuditOptions& options,
                       const AuditSubject& subject) {
  MC_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("audit"), "audit");
  const std::filesystem::path request = folder.path() / "request.json";
  MC_TRY_VOID(write_file_atomically(request, request_of(options, subject)), "audit");
  sandbox::Command command;
  command.argv = {options.sanitizer.string()};
  std::ranges::move(sanitizer_flags(tool, subject), std::back_inserter(command.argv));
  command.argv.insert(command.argv.end(),
                      {options.python.string(), "-P", "-B",
                       (options.harness / "judge/audit.py").string(), request.string()});
  command.environment = environment_of(options);
  command.profile = profile_of(options, folder.path());
  command.output_bytes_max = kOutputBytesMax;
  MC_TRY(const sandbox::Completed done, sandbox::run(command), "audit");
  const auto* exited = std::get_if<sandbox::Exited>(&done.ending);
  return conclude_audit(tool,
                        {done.out.text() + "\n" + done.err.text(), done.out.is_truncated(),
                         exited != nullptr ? exited->code : -1, sandbox::describe(done.ending)});
}

}  // namespace mc::execute
