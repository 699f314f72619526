// SPDX-License-Identifier: Apache-2.0
//
// Tests of commands that only print, and of the displays of progress.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/progress.h"
#include "cli/testing/run_line.h"
#include "core/file.h"
#include "reward/hints.h"

namespace mc::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Explain, PrintsTheHintOfAFinding) {
  EXPECT_EQ(run_line({"explain", "shared_race"}).out,
            "shared_race: " + std::string(reward::kernel_hint("shared_race")) + "\n");
  EXPECT_EQ(run_line({"explain", "no_code"}).out,
            "no_code: " + std::string(reward::extraction_hint("no_code")) + "\n");
  EXPECT_EQ(run_line({"explain", "nonfinite"}).out,
            "nonfinite: " + std::string(reward::output_hint("nonfinite")) + "\n");
  for (const char* name : {"illegal", "timing"}) {
    EXPECT_THAT(run_line({"explain", name}).out, HasSubstr(std::string(name) + ": "));
  }
  const Ended unknown = run_line({"explain", "magic"});
  EXPECT_EQ(unknown.code, kExitInput);
  EXPECT_EQ(unknown.err, "musacoder: explain: there is no hint for magic\n");
  EXPECT_EQ(unknown.out, "");
}

TEST(TaskList, ShowsSuitesAndTasks) {
  ::unsetenv("MC_KERNELBENCH");
  const Ended suites = run_line({"task", "list"});
  EXPECT_EQ(suites.code, kExitDone);
  EXPECT_THAT(suites.out, HasSubstr("suite         tasks  what it is"));
  EXPECT_THAT(suites.out, HasSubstr("kernelbench       -  set MC_KERNELBENCH"));
  const Ended tasks = run_line({"task", "list", "tasks"});
  EXPECT_THAT(tasks.out, HasSubstr("reduction/row_sum\n"));
  const Ended rows = run_line({"task", "list", "--json"});
  const auto row = nlohmann::json::parse(rows.out.substr(0, rows.out.find('\n')));
  EXPECT_TRUE(row.contains("id") && row.contains("code"));
  EXPECT_EQ(row["prompt"].back()["role"], "user");
  EXPECT_EQ(std::count(rows.out.begin(), rows.out.end(), '\n'),
            std::count(tasks.out.begin(), tasks.out.end(), '\n'));
  EXPECT_EQ(run_line({"task", "list", "kernelbench"}).code, kExitInput);
  EXPECT_EQ(run_line({"task", "list", "/dev/null/none"}).code, kExitInput);
  // A copy of KernelBench is counted, and its tasks are numbered.
  const auto room = TemporaryDirectory::create("kernelbench").value();
  std::filesystem::create_directories(room.path() / "level1");
  ASSERT_TRUE(write_file_atomically(
      room.path() / "level1" / "19_ReLU.py",
      "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
      "\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n"));
  ::setenv("MC_KERNELBENCH", room.path().c_str(), 1);
  EXPECT_THAT(
      run_line({"task", "list"}).out,
      HasSubstr("kernelbench       1  the copy in $MC_KERNELBENCH: --task kernelbench:1/19"));
  EXPECT_EQ(run_line({"task", "list", "kernelbench"}).out, "kernelbench:1/19\n");
  ::unsetenv("MC_KERNELBENCH");
}

TEST(Completion, HasTheCommandsAndTheirOptions) {
  const std::string bash = run_line({"completion", "bash"}).out;
  EXPECT_THAT(bash, HasSubstr("    task) words=\"list operators export check --"));
  EXPECT_THAT(bash, HasSubstr("    \"eval --dialect\") words=\"cuda musa\" ;;\n"));
  EXPECT_THAT(bash, HasSubstr("    explain) words=\"--help"));
  EXPECT_THAT(bash, HasSubstr("((COMP_CWORD == 1)) && words=\"eval prepare measure "));
  EXPECT_THAT(bash, Not(HasSubstr("bashcompinit")));
  const Ended zsh = run_line({"completion", "zsh"});
  EXPECT_EQ(zsh.out, "autoload -U +X bashcompinit && bashcompinit\n" + bash);
  const std::string fish = run_line({"completion", "fish"}).out;
  EXPECT_THAT(fish, HasSubstr("complete -c musacoder -n __fish_use_subcommand -a eval -d 'Judge "
                              "candidates'\n"));
  EXPECT_THAT(fish, HasSubstr("complete -c musacoder -n '__fish_seen_subcommand_from task' -a "
                              "'list operators export check'\n"));
  const std::string eval = "complete -c musacoder -n '__fish_seen_subcommand_from eval' -l ";
  EXPECT_THAT(fish, HasSubstr(eval + "dialect -xa 'cuda musa' -d "));
  EXPECT_THAT(fish, HasSubstr(eval + "jobs -r -d "));
  EXPECT_THAT(fish, HasSubstr(eval + "strict -d "));
  EXPECT_THAT(fish, HasSubstr("\\'"));  // A quote in a description.
  EXPECT_EQ(run_line({"completion", "cmd"}).code, kExitInput);
}

TEST(CommandLine, ErrorsAreOneLineWithAdvice) {
  EXPECT_EQ(run_line({"evl"}).err, "musacoder: no subcommand evl; did you mean eval?\n");
  EXPECT_THAT(run_line({"task", "chek"}).err, HasSubstr("did you mean check?"));
  EXPECT_EQ(run_line({}).code, kExitInput);
  EXPECT_EQ(run_line({"--version"}).out, std::string(kProgram) + "\n");
  EXPECT_EQ(run_line({"--version"}).code, kExitDone);
  EXPECT_THAT(run_line({"eval", "--help"}).out, HasSubstr("--candidate"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(report_error("p", {ErrorCode::kIo, "a\nb\rc"}), kExitMachine);
  EXPECT_EQ(report_error("p", {ErrorCode::kNotFound, "d"}), kExitInput);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "p: a b c\np: d\n");
  EXPECT_EQ(code_of(Result<int>(4)), 4);
  EXPECT_EQ(code_of(ok()), kExitDone);
}

TEST(CommandLine, AFullDiskIsAnError) {
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(99);
        std::exit(code_of_line({"explain", "shared_race"}));
      },
      testing::ExitedWithCode(kExitMachine), "standard output");
}

TEST(CommandLine, WordsBehindTheMarkBelongToTheCheckedProgram) {
  const auto left = [](std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    int argc = static_cast<int>(argv.size());
    keep_program_arguments(argc, argv.data());
    return argc;
  };
  EXPECT_EQ(left({"musacoder", "check", "a.cu", "--", "1000", "2"}), 3);
  EXPECT_EQ(left({"musacoder", "check", "a.cu"}), 3);
  EXPECT_EQ(left({"musacoder", "eval", "a.py", "--", "b"}), 5);
  EXPECT_EQ(left({"musacoder", "eval", "--", "check"}), 4);
}

// ---- Progress, when standard error is no terminal -----------------------------------------------

TEST(ProgressLine, IsPrintedForLongStepsAlone) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar(2);
    bar.advance("one");
    bar.note("compiling (minutes)");
    bar.advance("two");
    bar.show(1, 7, "three");
    bar.finish();
    bar.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "musacoder: compiling (minutes)\n");
}

TEST(ProgressLineDeathTest, CountsAtMostTheTotal) {
  EXPECT_DEATH(
      {
        ProgressBar bar(1);
        bar.advance("one");
        bar.advance("two");
      },
      "done_");
  EXPECT_DEATH(
      {
        ProgressBar bar(1);
        bar.show(2, 1, "");
      },
      "done <= total");
}

TEST(LiveEvents, AreWrittenAtTheBeginningAtVerdictsAndAtTheEnd) {
  store::Judgement before;
  before.key = {"t", 0, 0};
  before.reward = 1;
  before.verdict.outcome = task::Passed{};
  store::Judgement after = before;
  after.key = {"u", 0, 0};
  after.reward = 0;
  after.verdict.outcome = task::Wrong{};
  testing::internal::CaptureStdout();
  {
    const std::vector<store::Judgement> all = {before};
    Live live("run", Live::Events::kToStandardOutput, all, /*turns=*/1);
    live.begin({.num_to_ask = 3, .num_to_judge = 2, .num_judged = 1});
    live.enter(Live::Stage::kPreparing);
    live.enter(Live::Stage::kMeasuring);
    live.leave(Live::Stage::kPreparing);
    live.observe({.num_answers = 2, .num_verdicts = 2, .num_asked = 2, .judgement = &after});
    live.finish();
  }
  std::vector<nlohmann::json> events;
  std::istringstream lines(testing::internal::GetCapturedStdout());
  for (std::string line; std::getline(lines, line);) events.push_back(nlohmann::json::parse(line));
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events[0]["event"], "progress");
  EXPECT_EQ(events[0]["run"], "run");
  EXPECT_EQ(events[0]["queued"], 3);
  EXPECT_EQ(events[0]["waiting"], 2);
  EXPECT_EQ(events[0]["judged"], 1);
  EXPECT_EQ(events[0]["pass_rate"]["value"], 1);
  size_t num_samples = 0;
  for (const nlohmann::json& event : events) {
    if (event["event"] != "sample") continue;
    ++num_samples;
    EXPECT_EQ(event["task"], "u");
  }
  EXPECT_EQ(num_samples, 1U);
  const nlohmann::json& last = events.back();
  EXPECT_EQ(last["event"], "progress");
  EXPECT_EQ(last["measuring"], 1);
  EXPECT_EQ(last["preparing"], 0);
  EXPECT_EQ(last["judged"], 2);
  EXPECT_EQ(last["pass_rate"]["value"], 0.5);
  EXPECT_GT(last["elapsed_s"], 0);
  // Changes within a second of an event have none of their own.
  EXPECT_TRUE(events.size() == 3U || last["elapsed_s"] >= 1);
}

TEST(LiveEvents, AreNotWrittenUnlessRequested) {
  testing::internal::CaptureStdout();
  {
    Live live("run", Live::Events::kNone, {}, 1);
    live.begin({.num_to_ask = 1});
    live.finish();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST(Interrupt, PrintsItsLineWhenASignalEndsTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          print_when_ended("the line");
          ::raise(signal);
        },
        testing::KilledBySignal(signal), "^\nthe line\n$");
  }
  EXPECT_EXIT(
      {
        print_when_ended("the line");
        print_when_ended("");
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "^$");
  EXPECT_EXIT(
      {
        print_when_ended(std::string(10'000, 'x'));
        ::raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "^\nx{4294}\n$");
}

}  // namespace
}  // namespace mc::cli
