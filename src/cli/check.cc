// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder check`: runs a CUDA program without a GPU, with checks (docs/check.md).
#include "check/program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
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

struct CheckArguments {
  std::vector<std::string> sources;
  std::vector<std::string> nvcc_flags;
  uint64_t seed = 0;
  double timeout_s = 60;
  double memory_gib = 8;
  bool json = false;
};

// The words behind "--", which are the program's.
std::vector<std::string>& program_arguments() {
  static std::vector<std::string> words;
  return words;
}

// Hands on what the program writes, up to a limit.
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

std::string triple(const std::array<int64_t, 3>& three) {
  return fmt::format("({},{},{})", three[0], three[1], three[2]);
}

void print_finding(const task::KernelFinding& finding) {
  const std::string place = task::place_name(finding.location);
  fmt::print("{}{} in {}\n", place.empty() ? "" : place + ": ", finding.kind, finding.kernel);
  fmt::print("    block {}, thread {}: {}\n", triple(finding.block), triple(finding.thread),
             finding.detail);
  const std::string_view hint = reward::kernel_hint(finding.kind);
  if (!hint.empty()) fmt::print("    hint: {}\n", hint);
}

void print_summary(const Checked& checked) {
  for (const task::KernelFinding& finding : checked.findings) print_finding(finding);
  for (const std::string& what : checked.unsupported) {
    fmt::print(stderr, "musacoder: not checked to its end, for what the device lacks: {}\n", what);
  }
  const size_t num = checked.findings.size();
  fmt::print("== {} finding{} in {} launch{}; the program ended with {}\n", num,
             num == 1 ? "" : "s", checked.launches, checked.launches == 1 ? "" : "es",
             sandbox::describe(checked.ending));
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
  return {{"schema", "musacoder-check/1"},
          {"findings", findings},
          {"unsupported", checked.unsupported},
          {"launches", checked.launches},
          {"ending", sandbox::describe(checked.ending)}};
}

int exit_code_of(const Checked& checked) {
  if (!checked.findings.empty()) return kExitFound;
  if (!checked.unsupported.empty()) return kExitInput;
  const auto* exited = std::get_if<sandbox::Exited>(&checked.ending);
  return exited != nullptr && exited->code == 0 ? kExitDone : kExitMachine;
}

Result<int> run_check(const CheckArguments& arguments) {
  MC_TRY(const Layout layout, find_layout(), "check");
  MC_TRY_VOID(prepare_cache_directory(), "check");
  const auto tell = [](std::string_view step) { std::cerr << "musacoder: " << step << "\n"; };
  MC_TRY(const check::Tools tools, check::find_tools(layout, tell), "check");
  MC_TRY(const TemporaryDirectory folder, TemporaryDirectory::create("mc-check"), "check");
  const fs::path executable = folder.path() / fs::path(arguments.sources.front()).stem();
  const std::vector<fs::path> sources(arguments.sources.begin(), arguments.sources.end());
  MC_TRY(const check::Compiled compiled,
         check::compile_program(tools, sources, arguments.nvcc_flags, executable), "check");
  std::cerr << compiled.printed;
  if (!compiled.succeeded) {
    return Error{ErrorCode::kInvalidInput, "the program does not compile"};
  }
  check::RunOptions options{.arguments = program_arguments(),
                            .seed = arguments.seed,
                            .timeout_s = arguments.timeout_s,
                            .memory_bytes = std::llround(arguments.memory_gib * (1 << 30)),
                            .on_output = Forward(arguments.json)};
  MC_TRY(const Checked checked, check::check_program(tools, executable, options), "check");
  std::cout << std::flush;
  if (arguments.json) {
    std::cout << json_of(checked).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_summary(checked);
  }
  return exit_code_of(checked);
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
      ->required()
      ->check(CLI::ExistingFile);
  command->add_option("-X,--nvcc-flag", arguments->nvcc_flags,
                      "A flag for nvcc, such as -X-DN=100; may be given again");
  command->add_option("--seed", arguments->seed, "Another order of blocks and warps");
  command->add_option("--timeout", arguments->timeout_s, "Seconds that the program may run")
      ->check(kPositive);
  command->add_option("--memory", arguments->memory_gib, "GiB for the program and for its device")
      ->check(kPositive);
  command->add_flag("--json", arguments->json,
                    "Print findings as JSON; what the program writes goes to standard error");
  command->footer(
      "What stands behind -- are the program's own arguments. Exit codes: 0 no finding, 3 "
      "findings,\n"
      "2 it does not compile or asks for what the device lacks, 1 it failed by itself.\n\n"
      "  musacoder check reduce.cu -- 1000");
  command->callback([arguments, &exit_code] {
    auto done = run_check(*arguments);
    exit_code = done ? *done : report_error(done.error());
  });
}

}  // namespace mc::cli
