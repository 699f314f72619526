// SPDX-License-Identifier: Apache-2.0
//
// Ranks are forked processes with the options that the parent parsed.  The parent computes nothing:
// it waits, and after the first failure it kills the other ranks.  A rank also dies with its
// parent.
#include "cli/learn/in_ranks.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/learn/commands.h"
#include "cli/numbers.h"
#include "core/check.h"
#include "core/fd.h"

namespace mc::learn {
namespace {

using train::RankSetup;
using Body = std::function<Status(const RankSetup&)>;

// A rank that lost its peers, or failed like all others, waits before it reports an error.  So the
// launcher usually ends it first, and only the cause is printed.
constexpr std::chrono::seconds kDelayOfFirst{1};
constexpr std::chrono::seconds kDelayOfOthers{3};

int run_rank(const RankSetup& setup, const Body& body) {
  const auto wait = [&](std::chrono::seconds of_first) {
    if (setup.count > 1) {
      std::this_thread::sleep_for(setup.rank == 0 ? of_first : kDelayOfOthers);
    }
  };
  try {
    const Status status = body(setup);
    if (status) return kExitDone;
    wait({});
    return report_error(status.error());
  } catch (...) {
    wait(kDelayOfFirst);
    throw;
  }
}

void report_kill(int rank, int signal) {
  fmt::print(
      stderr,
      "musacoder-learn: rank {} was ended by signal {} ({}), so the others were stopped; sft "
      "goes on from its last checkpoint with --resume\n",
      rank, signal, ::strsignal(signal));
}

// The exit code of the first rank that failed, or 0.
int wait_for_all(std::map<pid_t, int> rank_of) {
  int code = kExitDone;
  while (!rank_of.empty()) {
    int status = 0;
    const auto found = rank_of.find(::waitpid(-1, &status, 0));
    if (found == rank_of.end()) continue;
    const int rank = found->second;
    rank_of.erase(found);
    if (status == 0 || code != kExitDone) continue;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitMachine;
    if (WIFSIGNALED(status)) report_kill(rank, WTERMSIG(status));
    for (const auto& [pid, other] : rank_of) ::kill(pid, SIGKILL);
  }
  return code;
}

int launch(int processes, const Body& body) {
  MC_CHECK(processes > 1);
  const auto setups = train::setups_here(processes);
  if (!setups) return report_error(setups.error());
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  std::map<pid_t, int> rank_of;
  for (const RankSetup& setup : *setups) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      return ::getppid() == parent ? run_rank(setup, body) : kExitMachine;
    }
    if (pid < 0) {
      const Error error = system_error(ErrorCode::kUnavailable, "cannot start a rank");
      for (const auto& [started, rank] : rank_of) ::kill(started, SIGKILL);
      return report_error(error);
    }
    rank_of.emplace(pid, setup.rank);
  }
  return wait_for_all(std::move(rank_of));
}

}  // namespace

void add_processes(CLI::App& command, int& processes) {
  command
      .add_option("--processes", processes,
                  "Processes of this machine that share each step; with --device cuda a GPU each")
      ->check(cli::kPositive);
}

int run_in_ranks(int processes, const Body& body) {
  const auto setup = train::setup_of_environment();
  if (!setup) return report_error(setup.error());
  if (setup->count > 1 && processes > 1) {
    return report_error(invalid("--processes: torchrun has started the processes already"));
  }
  return processes > 1 ? launch(processes, body) : run_rank(*setup, body);
}

}  // namespace mc::learn
