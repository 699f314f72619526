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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "cli/check_report.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "core/file.h"
#include "core/layout.h"

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
class OutputForwarder {
 public:
  explicit OutputForwarder(bool is_all_error) : is_all_error_(is_all_error) {}
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

Status print_report(const CheckArguments& arguments, const Json& report, std::string_view ended) {
  std::cout << std::flush;
  if (arguments.json) {
    std::cout << text_of(report);
  } else {
    print_check_report(report, ended);
  }
  return arguments.sarif.empty() ? ok() : write_output(arguments.sarif, text_of(sarif_of(report)));
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
  const Json report = merged_report(found);
  MC_TRY_VOID(print_report(arguments, report,
                           fmt::format("{}; {} ended with exit code {}",
                                       counted(found.size(), "program"), words.front(), code)),
              "check");
  if (!found.empty() || code != 0) return check_exit_code(report, code == 0);
  return invalid(
      "no program was checked: the command runs none that the nvcc of PATH, CUDA_HOME, "
      "CUDA_PATH or CUDACXX linked");
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
                              .on_output = OutputForwarder(arguments.json && reports == nullptr)};
    if (i > 0) options.on_output = [](bool, std::string_view) {};
    MC_TRY(const Checked checked, check::check_program(tools, executable, options), "check");
    runs.push_back(check_report(checked));
    if (i == 0) ending = checked.ending;
  }
  Json report = merged_report(runs);
  report["ending"] = sandbox::describe(ending);
  if (reports != nullptr) return hand_over(report, ending, reports);
  MC_TRY_VOID(
      print_report(arguments, report, "the program ended with " + sandbox::describe(ending)),
      "check");
  const auto* exited = std::get_if<sandbox::Exited>(&ending);
  return check_exit_code(report, exited != nullptr && exited->code == 0);
}

Result<int> run_check(const CheckArguments& arguments) {
  const auto is_python = [](const fs::path& source) { return source.extension() == ".py"; };
  if (std::ranges::any_of(arguments.sources, is_python)) {
    return invalid("check takes .cu and .cpp files; musacoder eval judges a Python module");
  }
  MC_TRY(const Layout layout, find_layout(), "check");
  MC_TRY_VOID(prepare_cache_directory(), "check");
  if (!arguments.program.empty() && std::getenv(check::kReportsVariable) != nullptr) {
    return run_program(arguments, check::tools_of_command(layout), arguments.program);
  }
  MC_TRY(const check::Tools tools, check::find_tools(layout, print_step), "check");
  if (!arguments.program.empty()) return run_program(arguments, tools, arguments.program);
  MC_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("mc-check"), "check");
  if (arguments.sources.empty()) {
    if (!program_arguments().empty()) return check_a_command(arguments, tools, folder.path());
    return invalid(
        "nothing to check: give .cu files, or a command behind --, such as -- make test");
  }
  const fs::path executable = folder.path() / fs::path(arguments.sources.front()).stem();
  const std::vector<fs::path> sources(arguments.sources.begin(), arguments.sources.end());
  MC_TRY(const check::Compiled compiled,
         check::compile_program(tools, sources, arguments.nvcc_flags, executable), "check");
  std::cerr << compiled.printed;
  if (!compiled.succeeded) {
    return invalid("the program does not compile");
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
  command->callback([arguments, &exit_code] { exit_code = code_of(run_check(*arguments)); });
}

}  // namespace mc::cli
