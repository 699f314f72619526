// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "compile/artifact_store.h"
#include "compile/cuda_toolchain.h"
#include "core/file.h"
#include "core/layout.h"
#include "legality/flags.h"
#include "legality/policy.h"

namespace mc::cli {
namespace {

using Json = nlohmann::json;

struct CompileArguments {
  std::string in;
  std::string architecture = "90";
  bool full_headers = false;
  int jobs = 1;
  double compile_s = 120;
};

struct Toolbox {
  legality::Policy policy;
  std::unique_ptr<compile::CudaToolchain> toolchain;
};

Result<Toolbox> open(const CompileArguments& arguments) {
  MC_TRY(const Layout layout, find_layout(), "set-up");
  MC_TRY(legality::Policy policy, legality::load_policy(layout.share("policy"), "musacoder"),
         "policy");
  MC_TRY(const compile::PyTorch pytorch, compile::find_pytorch(compile::default_python()),
         "set-up");
  MC_TRY(compile::CudaRuntime runtime, compile::find_cuda_runtime(pytorch, arguments.architecture),
         "set-up");
  ProgressBar bar(0);
  if (!arguments.full_headers) {
    MC_TRY_VOID(compile::add_facade(runtime, pytorch, layout,
                                    [&](std::string_view step) { bar.note(step); }),
                "set-up");
  }
  bar.finish();
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "set-up");
  return Toolbox{std::move(policy),
                 std::make_unique<compile::CudaToolchain>(
                     std::move(runtime), cache_directory() / "artifacts", bytes_max)};
}

const char* name_of(const compile::Compiled& outcome) {
  if (std::holds_alternative<compile::Artifact>(outcome)) return "compiled";
  if (std::holds_alternative<task::CompileFailed>(outcome)) return "compile_failed";
  if (std::holds_alternative<task::TimedOut>(outcome)) return "timeout";
  return std::holds_alternative<task::OutOfMemory>(outcome) ? "oom" : "unsupported";
}

std::string first_error(const compile::Compiled& outcome) {
  const auto* failed = std::get_if<task::CompileFailed>(&outcome);
  if (failed == nullptr || failed->diagnostics.empty()) return "";
  const task::Diagnostic& first = failed->diagnostics.front();
  return first.location.source + ":" + std::to_string(first.location.line) + ": " + first.message;
}

// The extensions of one candidate, up to the first that fails.
Result<Json> compile_line(Toolbox& tools, const CompileArguments& arguments,
                          const std::string& line) {
  const Json question = Json::parse(line, nullptr, false);
  if (!question.is_object() || !question.contains("id") ||
      !question.value("source", Json()).is_string()) {
    return Error{ErrorCode::kInvalidInput,
                 "a line is no {id, source, extensions}: " + line.substr(0, 80)};
  }
  MC_TRY(std::vector<compile::Extension> extensions, compile::parse_extensions(line), "extensions");
  const compile::LocationMapper mapper(question["source"].get<std::string>(), extensions);
  compile::CompileLimits limits;
  limits.wall_s = arguments.compile_s;
  Json answer{{"id", question["id"]},
              {"outcome", "compiled"},
              {"error", ""},
              {"cpu_s", 0.0},
              {"full_headers", Json::array()}};
  bool cached = true;
  const auto start = std::chrono::steady_clock::now();
  for (compile::Extension& extension : extensions) {
    auto [passed, findings] = legality::check_flags(
        tools.policy,
        {extension.extra_cflags, extension.extra_cuda_cflags, extension.extra_ldflags});
    extension.extra_cflags = passed.cxx;
    extension.extra_cuda_cflags = passed.cuda;
    extension.extra_ldflags = passed.link;
    MC_TRY(const compile::Compilation done, tools.toolchain->compile(extension, mapper, limits),
           "compile");
    answer["cpu_s"] = answer["cpu_s"].get<double>() + done.cpu_s;
    if (!done.full_headers.empty()) answer["full_headers"].push_back(done.full_headers);
    const auto* artifact = std::get_if<compile::Artifact>(&done.outcome);
    cached &= artifact != nullptr && artifact->cached;
    answer["outcome"] = name_of(done.outcome);
    answer["error"] = first_error(done.outcome);
    if (artifact == nullptr) break;
  }
  answer["cached"] = cached;
  answer["wall_s"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return answer;
}

Status compile_all(const CompileArguments& arguments) {
  std::ifstream file(arguments.in);
  if (!file) return Error{ErrorCode::kInvalidInput, "cannot read " + arguments.in};
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  MC_TRY(Toolbox tools, open(arguments), "compile");
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  Status status = ok();  // Guarded by mutex, as standard output is.
  const auto work = [&] {
    for (size_t i = next++; i < lines.size(); i = next++) {
      const Result<Json> answer = compile_line(tools, arguments, lines[i]);
      const std::lock_guard lock(mutex);
      if (answer) {
        std::cout << answer->dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
      } else {
        status = answer.error();
        next = lines.size();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < arguments.jobs; ++i) threads.emplace_back(work);
  }
  return status;
}

}  // namespace

void add_compile(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App* command = app.add_subcommand(
      "compile", "Compile recorded extensions for a CUDA device, which need not be here");
  command->add_option("file", arguments->in, "JSON Lines of {id, source, extensions}")->required();
  command
      ->add_option("--architecture", arguments->architecture,
                   "Compute capability without its point")
      ->capture_default_str();
  command->add_flag("--full-headers", arguments->full_headers,
                    "Compile all against PyTorch's own headers (slow)");
  command->add_option("-j,--jobs", arguments->jobs, "Candidates compiled at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--compile-timeout", arguments->compile_s, "Seconds for one compilation")
      ->check(kPositive)
      ->capture_default_str();
  command->callback([arguments, &exit_code] {
    const Status status = compile_all(*arguments);
    exit_code = status ? kExitDone : report_error(status.error());
  });
}

}  // namespace mc::cli
