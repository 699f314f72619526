// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder check`: runs a CUDA program without a GPU, with checks (docs/check.md).
#include "check/command.h"
#include "check/program.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/file.h"
#include "core/layout.h"
#include "reward/hints.h"
#include "task/text.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using check::Checked;

constexpr int64_t kOutputBytesMax = int64_t{16} << 20;
constexpr size_t kReportBytesMax = size_t{16} << 20;

struct CheckArguments {
  std::vector<std::string> sources;
  std::string program;  // A compiled program, instead of sources.
  std::vector<std::string> nvcc_flags;
  uint64_t seed = 0;
  double timeout_s = 60;
  double memory_gib = 8;
  int schedules = 1;
  bool json = false;
  bool profile = false;
  std::string sarif;  // The path of the SARIF file; empty if none is wanted.
};

// The words after "--": the program's arguments or, without sources, a command.
std::vector<std::string>& program_arguments() {
  static std::vector<std::string> words;
  return words;
}

// Forwards the program's output, up to a limit.
class Forward {
 public:
  explicit Forward(bool is_all_error) : is_all_error_(is_all_error) {}
  void operator()(bool is_error, std::string_view text) {
    if (left_ <= 0) return;
    std::ostream& stream = is_error || is_all_error_ ? std::cerr : std::cout;
    stream << text.substr(0, static_cast<size_t>(left_)) << std::flush;
    left_ -= static_cast<int64_t>(text.size());
    if (left_ <= 0) std::cerr << "\nmusacoder: what the program writes beyond 16 MiB is left out\n";
  }

 private:
  bool is_all_error_;
  int64_t left_ = kOutputBytesMax;
};

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

Json json_of(const Checked& checked) {
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

// `ended` says how the program or the command ended; the report does not contain it.
void print_summary(const Json& report, std::string_view ended) {
  for (const Json& finding : report["findings"]) print_finding(finding);
  if (!report["profile"].empty()) print_profile(report["profile"]);
  for (const std::string what : report["unsupported"]) {
    fmt::print(stderr, "musacoder: not checked to its end, for what the device lacks: {}\n", what);
  }
  fmt::print("== {} in {}; {}\n", counted(report["findings"].size(), "finding"),
             counted(report["launches"], "launch"), ended);
}

// The report in SARIF 2.1.0, the format that code hosts accept for annotations.
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

Status print_report(const CheckArguments& arguments, const Json& report, std::string_view ended) {
  std::cout << std::flush;
  if (arguments.json) {
    std::cout << text_of(report);
  } else {
    print_summary(report, ended);
  }
  return arguments.sarif.empty() ? ok() : write_output(arguments.sarif, text_of(sarif_of(report)));
}

int exit_code_of(const Json& report, bool is_done) {
  if (!report["findings"].empty()) return kExitFound;
  if (!report["unsupported"].empty()) return kExitInput;
  return is_done ? kExitDone : kExitMachine;
}

// Merges the reports of several runs; each finding and each unsupported feature occurs once.
Json merged(const std::vector<Json>& reports) {
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

// The reports that the programs of a command wrote.
std::vector<Json> read_reports(const fs::path& folder) {
  std::vector<Json> reports;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const auto text = read_file(entry.path(), kReportBytesMax);
    Json one = text ? Json::parse(*text, nullptr, false) : Json();
    if (one.is_object()) reports.push_back(std::move(one));
  }
  return reports;
}

Result<int> check_a_command(const CheckArguments& arguments, const check::Tools& tools,
                            const fs::path& folder) {
  const fs::path toolkit = folder / "toolkit", reports = folder / "reports";
  MC_TRY_VOID(check::make_toolkit(tools, toolkit), "check");
  std::error_code failure;
  fs::create_directories(reports, failure);
  const std::vector<std::string>& words = program_arguments();
  ::setenv("MC_CHECK_SEED", fmt::format("{}", arguments.seed).c_str(), 1);
  ::setenv("MC_CHECK_SCHEDULES", fmt::format("{}", arguments.schedules).c_str(), 1);
  ::setenv("MC_CHECK_TIMEOUT", fmt::format("{}", arguments.timeout_s).c_str(), 1);
  ::setenv("MC_CHECK_PROFILE", arguments.profile ? "true" : "false", 1);
  ::setenv("MC_CHECK_MEMORY", fmt::format("{}", arguments.memory_gib).c_str(), 1);
  MC_TRY(const int code, check::run_command(tools, words, toolkit, reports), "check");
  const std::vector<Json> found = read_reports(reports);
  const Json report = merged(found);
  MC_TRY_VOID(print_report(arguments, report,
                           fmt::format("{}; {} ended with exit code {}",
                                       counted(found.size(), "program"), words.front(), code)),
              "check");
  if (!found.empty() || code != 0) return exit_code_of(report, code == 0);
  return Error{ErrorCode::kInvalidInput,
               "no program was checked: the command runs none that the nvcc of PATH, CUDA_HOME, "
               "CUDA_PATH or CUDACXX linked"};
}

// Inside a command, the program must behave as without the check, so its report is written to a
// file.
Result<int> hand_over(const Json& report, const sandbox::Ending& ending, const fs::path& reports) {
  const fs::path path = reports / fmt::format("{}.json", ::getpid());
  MC_TRY_VOID(write_file_atomically(path, text_of(report)), "check");
  if (const auto* exited = std::get_if<sandbox::Exited>(&ending)) return exited->code;
  fmt::print(stderr, "musacoder: the program ended with {}\n", sandbox::describe(ending));
  return kExitMachine;
}

Result<int> run_program(const CheckArguments& arguments, const check::Tools& tools,
                        const fs::path& executable) {
  const char* const reports = std::getenv(check::kReportsVariable);
  std::vector<Json> runs;
  // The ending of the first run, whose output is also the one that is forwarded.
  sandbox::Ending ending;
  for (int i = 0; i < arguments.schedules; ++i) {
    check::RunOptions options{.arguments = program_arguments(),
                              .seed = arguments.seed + static_cast<uint64_t>(i),
                              .timeout_s = arguments.timeout_s,
                              .memory_bytes = std::llround(arguments.memory_gib * (1 << 30)),
                              .counts = arguments.profile && i == 0,
                              .on_output = Forward(arguments.json && reports == nullptr)};
    if (i > 0) options.on_output = [](bool, std::string_view) {};
    MC_TRY(const Checked checked, check::check_program(tools, executable, options), "check");
    runs.push_back(json_of(checked));
    if (i == 0) ending = checked.ending;
  }
  Json report = merged(runs);
  report["ending"] = sandbox::describe(ending);
  if (reports != nullptr) return hand_over(report, ending, reports);
  MC_TRY_VOID(
      print_report(arguments, report, "the program ended with " + sandbox::describe(ending)),
      "check");
  const auto* exited = std::get_if<sandbox::Exited>(&ending);
  return exit_code_of(report, exited != nullptr && exited->code == 0);
}

Result<int> run_check(const CheckArguments& arguments) {
  MC_TRY(const Layout layout, find_layout(), "check");
  MC_TRY_VOID(prepare_cache_directory(), "check");
  if (!arguments.program.empty() && std::getenv(check::kReportsVariable) != nullptr) {
    return run_program(arguments, check::tools_of_command(layout), arguments.program);
  }
  const auto tell = [](std::string_view step) { std::cerr << "musacoder: " << step << "\n"; };
  MC_TRY(const check::Tools tools, check::find_tools(layout, tell), "check");
  if (!arguments.program.empty()) return run_program(arguments, tools, arguments.program);
  MC_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("mc-check"), "check");
  if (arguments.sources.empty()) {
    if (!program_arguments().empty()) return check_a_command(arguments, tools, folder.path());
    return Error{ErrorCode::kInvalidInput,
                 "nothing to check: give .cu files, or a command behind --, such as -- make test"};
  }
  const fs::path executable = folder.path() / fs::path(arguments.sources.front()).stem();
  const std::vector<fs::path> sources(arguments.sources.begin(), arguments.sources.end());
  MC_TRY(const check::Compiled compiled,
         check::compile_program(tools, sources, arguments.nvcc_flags, executable), "check");
  std::cerr << compiled.printed;
  if (!compiled.succeeded) {
    return Error{ErrorCode::kInvalidInput, "the program does not compile"};
  }
  return run_program(arguments, tools, executable);
}

}  // namespace

void keep_program_arguments(int& argc, char** argv) {
  const auto end = argv + argc;
  const auto mark =
      std::find_if(argv, end, [](const char* word) { return std::string_view(word) == "--"; });
  const bool is_check =
      std::any_of(argv, mark, [](const char* word) { return std::string_view(word) == "check"; });
  if (mark == end || !is_check) return;
  program_arguments().assign(mark + 1, end);
  argc = static_cast<int>(mark - argv);
}

void add_check(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = app.add_subcommand(
      "check", "Run a CUDA program without a GPU, and find races, bad accesses and barriers");
  command->add_option("sources", arguments->sources, "The program's .cu and .cpp files")
      ->check(CLI::ExistingFile);
  command
      ->add_option("--program", arguments->program,
                   "In place of sources: a program that was linked within check -- COMMAND")
      ->check(CLI::ExistingFile)
      ->excludes("sources");
  command
      ->add_option("-X,--nvcc-flag", arguments->nvcc_flags,
                   "A flag for nvcc, such as -X-DN=100; may be given again")
      ->allow_extra_args(false);
  command->add_option("--seed", arguments->seed, "Another order of blocks and warps")
      ->envname("MC_CHECK_SEED");
  command->add_option("--timeout", arguments->timeout_s, "Seconds that the program may run")
      ->envname("MC_CHECK_TIMEOUT")
      ->check(kPositive);
  command->add_option("--memory", arguments->memory_gib, "GiB for the program and for its device")
      ->envname("MC_CHECK_MEMORY")
      ->check(kPositive);
  command
      ->add_option("--schedules", arguments->schedules,
                   "Orders of blocks and warps: the program runs once for each")
      ->envname("MC_CHECK_SCHEDULES")
      ->check(kPositive);
  command->add_option("--sarif", arguments->sarif, "Also write the findings as SARIF to this file");
  command
      ->add_flag("--profile", arguments->profile,
                 "Also print what each kernel did: sectors, bank conflicts, active lanes")
      ->envname("MC_CHECK_PROFILE");
  command->add_flag("--json", arguments->json,
                    "Print findings as JSON; what the program writes goes to standard error");
  command->footer(
      "What stands behind -- are the program's own arguments; without sources it is a command,\n"
      "whose CUDA programs are checked. Exit codes: 0 no finding, 3 findings, 2 it does not "
      "compile\n"
      "or asks for what the device lacks, 1 it failed by itself.\n\n"
      "  musacoder check reduce.cu -- 1000\n"
      "  musacoder check -- make test");
  command->callback([arguments, &exit_code] {
    auto done = run_check(*arguments);
    exit_code = done ? *done : report_error(done.error());
  });
}

}  // namespace mc::cli
