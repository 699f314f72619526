// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder serve`: replaces this process by python/musacoder/server/, with `eval
// --stream` as its verifier.  Options that the service does not know are passed to the verifier.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/python.h"
#include "compile/pytorch.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

struct ServeArguments {
  std::string host = "127.0.0.1";
  int port = 8377;
  int queue = 4096;
  double grace_s = 30;
  std::string state;
  std::string token_file;
  std::string tokens;
  std::vector<std::string> names;
  std::string ray;  // The address of a Ray cluster; "": the verifier is a local child process.
};

bool names_jobs(const std::string& word) { return word.starts_with("--jobs") || word == "-j"; }

// The command of the verifier, which exchanges requests and replies as lines.
std::vector<std::string> verifier_command(const ServeArguments& arguments, const Layout& layout,
                                          const std::vector<std::string>& options) {
  if (!arguments.ray.empty()) {
    return {compile::default_python(),
            "-P",
            (layout.share("python") / "musacoder/ray/__main__.py").string(),
            "stream",
            "--address",
            arguments.ray};
  }
  std::vector<std::string> words = {(layout.prefix / "bin/musacoder").string(), "eval", "--stream"};
  if (std::none_of(options.begin(), options.end(), names_jobs)) {
    words.insert(words.end(),
                 {"--jobs", std::to_string(std::max(1U, std::thread::hardware_concurrency()))});
  }
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

// Replaces this process; returns only if Python does not start.
Error start(const ServeArguments& arguments, const std::vector<std::string>& of_verifier) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  std::vector<std::string> words = {
      (layout->share("python") / "musacoder/server/__main__.py").string(),
      "--host",
      arguments.host,
      "--port",
      std::to_string(arguments.port),
      "--queue",
      std::to_string(arguments.queue),
      "--grace",
      fmt::format("{}", arguments.grace_s)};
  for (const auto& [option, value] :
       {std::pair("--state", arguments.state), std::pair("--token-file", arguments.token_file),
        std::pair("--tokens", arguments.tokens)}) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  }
  for (const std::string& name : arguments.names) words.insert(words.end(), {"--allow-host", name});
  if (!arguments.ray.empty() && !of_verifier.empty()) {
    return {ErrorCode::kInvalidInput,
            "--ray: the pool's verifiers have their options already (" + of_verifier.front() + ")"};
  }
  words.emplace_back("--");
  const auto verifier = verifier_command(arguments, *layout, of_verifier);
  words.insert(words.end(), verifier.begin(), verifier.end());
  return exec_python(std::move(words));
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand(
      "serve", "Judge answers that come over HTTP; other options are those of eval");
  command->allow_extras();
  command->fallthrough(false);  // Unknown options belong to another program.
  command->add_option("--host", arguments->host,
                      "An address of this machine; one that others reach needs a token");
  command->add_option("--port", arguments->port, "0: any that is free")
      ->check(whole_range(0, 65535));
  command->add_option("--queue", arguments->queue, "Requests that may wait; more get 429")
      ->check(whole_range(1, 1'000'000));
  command
      ->add_option("--grace", arguments->grace_s,
                   "Seconds for what is being judged when SIGTERM or Ctrl-C ends the service")
      ->check(kNotNegative);
  command->add_option("--token-file", arguments->token_file,
                      "Holds the bearer token that requests must have (or: $MUSACODER_TOKEN)");
  command->add_option("--tokens", arguments->tokens,
                      "A file of names, hashes of tokens and quotas (docs/serve.md)");
  command->add_option("--state", arguments->state,
                      "A folder for jobs, which a restart continues; by default one for each port, "
                      "below $XDG_STATE_HOME or ~/.local/state");
  command->add_option("--allow-host", arguments->names,
                      "A name of this machine that requests may have as their Host");
  command->add_option("--ray", arguments->ray,
                      "Judge by the pool of a Ray cluster at this address, or auto "
                      "(docs/serve.md)");
  command->footer(
      "All other options are of the verifier, such as --policy: musacoder eval --help\n"
      "Example:\n"
      "  musacoder serve --backend cpu --jobs 2");
  command->callback([arguments, command, &exit_code] {
    exit_code = report_error(start(*arguments, command->remaining()));
  });
}

}  // namespace mc::cli
