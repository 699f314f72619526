// SPDX-License-Identifier: Apache-2.0
#include "cli/judging.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cli/testing/run_line.h"
#include "core/file.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

report::Judged judged(const std::string& candidate, task::Outcome outcome,
                      std::optional<double> reward) {
  task::Verdict verdict;
  verdict.candidate = candidate;
  verdict.outcome = std::move(outcome);
  return {std::move(verdict), reward, 0, ""};
}

TEST(ForEachIndex, CallsOnceForEachIndexWithAnyNumberOfThreads) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{100}}) {
    for (const int jobs : {1, 2, 7}) {
      std::vector<std::atomic<int>> calls(count);
      for_each_index(count, jobs, [&](size_t i) { ++calls[i]; });
      for (size_t i = 0; i < count; ++i) EXPECT_EQ(calls[i], 1) << i << " of " << count;
    }
  }
}

TEST(ExitCode, DependsFirstOnTheInputThenOnFailedThenOnUnscoredVerdicts) {
  const report::Judged pass = judged("p", task::Passed{}, 1);
  const report::Judged wrong = judged("w", task::Wrong{}, 0);
  const report::Judged unscored = judged("u", task::Unsupported{}, std::nullopt);
  const Error bad = invalid("bad");
  const struct {
    std::vector<Error> bad;
    std::vector<report::Judged> judged;
    bool is_asked;  // True if --exit-code is given.
    int code;
  } kTable[] = {
      {{}, {}, false, kExitDone},
      {{}, {wrong, unscored}, false, kExitDone},
      {{bad}, {pass}, false, kExitInput},
      {{bad}, {wrong}, true, kExitInput},
      {{}, {pass, pass}, true, kExitDone},
      {{}, {pass, unscored}, true, kExitUnscored},
      {{}, {unscored, wrong}, true, kExitFailed},
      {{}, {pass, wrong}, true, kExitFailed},
  };
  for (const auto& row : kTable) {
    EvalArguments arguments;
    arguments.exit_code = row.is_asked;
    EXPECT_EQ(exit_code_of(row.bad, row.judged, arguments), row.code) << &row - kTable;
  }
}

std::string text_of(const fs::path& path) {
  std::ifstream stream(path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(ResultsFile, HasVerdictsInOrderAndAPartFileUntilThen) {
  const auto folder = TemporaryDirectory::create("results").value();
  const fs::path path = folder.path() / "out.jsonl";
  const fs::path part = folder.path() / "out.jsonl.part";
  const report::Judged first = judged("a", task::Passed{}, 1);
  const report::Judged second = judged("b", task::Wrong{}, 0);
  const auto results = VerdictFile::create(path).value();
  results->add(second);  // The second verdict was ready before the first.
  results->add(first);
  EXPECT_EQ(text_of(part), report::json_line(second) + report::json_line(first));
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(results->finish({first, second}));
  EXPECT_EQ(text_of(path), report::json_line(first) + report::json_line(second));
  EXPECT_FALSE(fs::exists(part));
}

TEST(ResultsFile, IsNotWrittenWithoutAName) {
  const auto results = VerdictFile::create("").value();
  results->add(judged("a", task::Passed{}, 1));
  EXPECT_TRUE(results->finish({}));
}

TEST(ResultsFile, ThatCannotBeWrittenIsReportedAtOnce) {
  const auto results = VerdictFile::create("/dev/null/none/out.jsonl");
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message,
            "--out: cannot write /dev/null/none/out.jsonl.part: Not a directory");
}

// ---- Work ---------------------------------------------------------------------------------------

constexpr const char* kModelCode =
    "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    "\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n    return []\n";

class LoadWork : public testing::Test {
 protected:
  LoadWork() : room_(std::move(TemporaryDirectory::create("work").value())) {
    fs::create_directories(room_.path() / "tasks/own");
    put("tasks/own/copy.py", kModelCode);
    put("candidates/b.py", "b");
    put("candidates/a.md", "a");
    put("candidates/c.txt", "c");
    put("candidates/d.cu", "d");
    ::setenv("MC_PREFIX", MC_PREFIX_DIR, 1);
  }
  ~LoadWork() override { ::unsetenv("MC_PREFIX"); }

  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((room_.path() / name).parent_path());
    EXPECT_TRUE(write_file_atomically(room_.path() / name, text));
  }
  std::string at(const std::string& name) const { return room_.path() / name; }

  struct Loaded {
    LoadedWork given;
    std::string error;    // The error of the whole.
    std::string printed;  // The lines about invalid items.
  };
  Loaded load(const EvalArguments& arguments) const {
    testing::internal::CaptureStderr();
    auto given = load_work(arguments, find_layout().value());
    Loaded loaded;
    loaded.printed = testing::internal::GetCapturedStderr();
    if (!given) loaded.error = given.error().message;
    if (given) loaded.given = std::move(*given);
    return loaded;
  }

  TemporaryDirectory room_;
};

TEST_F(LoadWork, AFolderHasItsModulesAndAnswers) {
  EvalArguments arguments;
  arguments.task = at("tasks/own/copy.py");
  arguments.candidates = {at("candidates")};
  const Loaded loaded = load(arguments);
  ASSERT_EQ(loaded.given.work.size(), 3U) << loaded.error << loaded.printed;
  EXPECT_EQ(loaded.given.work[0].candidate.answer, "a");
  EXPECT_EQ(loaded.given.work[1].candidate.answer, "b");
  EXPECT_EQ(loaded.given.work[2].candidate.answer, "c");
  EXPECT_EQ(loaded.given.work[0].task.code, kModelCode);
  EXPECT_EQ(loaded.printed, "");
}

TEST_F(LoadWork, InvalidItemsAreLines) {
  EvalArguments arguments;
  arguments.task = at("tasks/own/copy.py");
  fs::create_directories(room_.path() / "empty");
  arguments.candidates = {at("candidates/d.cu"), at("empty"), at("none.py"), at("candidates/b.py")};
  const Loaded loaded = load(arguments);
  EXPECT_EQ(loaded.given.work.size(), 1U);
  ASSERT_EQ(loaded.given.bad.size(), 3U);
  EXPECT_EQ(loaded.printed.substr(0, loaded.printed.find(':')), "musacoder");
  EXPECT_NE(loaded.printed.find("d.cu is no candidate: give a Python module"), std::string::npos);
  EXPECT_NE(loaded.printed.find("empty holds no .py, .md or .txt file"), std::string::npos);
  EXPECT_NE(loaded.printed.find("none.py"), std::string::npos);
}

TEST_F(LoadWork, TheTasksOfAFileAreFoundByName) {
  put("answers.jsonl", R"({"task": "own/copy", "sample": 0, "response": "x"})"
                       "\n"
                       R"({"task": "own/cpoy", "sample": 1, "response": "y"})"
                       "\n"
                       R"({"sample": 2, "response": "z"})"
                       "\n");
  EvalArguments arguments;
  arguments.suite = at("tasks");
  arguments.candidates = {at("answers.jsonl")};
  const Loaded loaded = load(arguments);
  EXPECT_EQ(loaded.error, "");
  EXPECT_EQ(loaded.given.work.size() + loaded.given.bad.size(), 3U) << loaded.printed;
  for (const Error& error : loaded.given.bad) {
    EXPECT_NE(error.message.find("answers.jsonl"), std::string::npos) << error.message;
  }
}

TEST_F(LoadWork, AnUnknownTaskIsAnErrorOfTheWhole) {
  EvalArguments arguments;
  arguments.task = "reduction/row_sumx";
  arguments.candidates = {at("candidates/b.py")};
  EXPECT_NE(load(arguments).error.find("did you mean reduction/row_sum?"), std::string::npos);
  arguments.task = "other/row_sum";  // The part behind the slash is a name that there is.
  EXPECT_NE(load(arguments).error.find("did you mean reduction/row_sum?"), std::string::npos);
  arguments.task = "magic";
  EXPECT_NE(load(arguments).error.find("musacoder task list tasks shows what there is"),
            std::string::npos);
  arguments.task = at("none.py");
  EXPECT_EQ(load(arguments).error.find("did you mean"), std::string::npos);
  arguments.task = "x";
  arguments.suite = at("tasks");
  EXPECT_NE(load(arguments).error.find("the suite has no task x"), std::string::npos);
}

TEST_F(LoadWork, AnEntryPointRenamesTheModel) {
  put("net.py",
      "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n"
      "        return x\n\ndef get_inputs():\n    return []\n\ndef get_init_inputs():\n"
      "    return []\n");
  EvalArguments arguments;
  arguments.task = at("net.py");
  arguments.candidates = {at("candidates/b.py")};
  const Loaded without = load(arguments);
  arguments.entry_point = "Net";
  const Loaded with = load(arguments);
  ASSERT_EQ(with.given.work.size(), 1U) << with.printed << with.error;
  if (!without.given.work.empty()) {
    EXPECT_NE(with.given.work[0].task.code, without.given.work[0].task.code);
  }
}

TEST_F(LoadWork, SuitesHaveNames) {
  const Layout layout = find_layout().value();
  ::unsetenv("MC_KERNELBENCH");
  EXPECT_EQ(suite_path("", layout).value(), "");
  EXPECT_EQ(suite_path("tasks", layout).value(), layout.share("data/tasks"));
  EXPECT_EQ(suite_path("/a/b", layout).value(), "/a/b");
  EXPECT_FALSE(suite_path("kernelbench", layout));
  ::setenv("MC_KERNELBENCH", "/kb", 1);
  EXPECT_EQ(suite_path("kernelbench", layout).value(), "/kb");
  EXPECT_EQ(roots_of(layout).kernelbench, "/kb");
  ::unsetenv("MC_KERNELBENCH");
  EXPECT_EQ(roots_of(layout).kernelbench, "");
}

TEST(Judging, ManyInvalidItemsAreCut) {
  const auto lines_of = [](size_t count) {
    testing::internal::CaptureStderr();
    report_bad(std::vector<Error>(count, invalid("bad")));
    return testing::internal::GetCapturedStderr();
  };
  const auto lines = [](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += "musacoder: bad\n";
    return text;
  };
  EXPECT_EQ(lines_of(20), lines(20));
  EXPECT_EQ(lines_of(22), lines(20) + "musacoder: and 2 more that cannot be judged\n");
}

// The arguments that a command line gives to resolve_options().
Result<EvalArguments> settled(std::vector<std::string> words) {
  EvalArguments arguments;
  CLI::App command{"", "eval"};
  add_machine(command, arguments);
  add_dialect(command, arguments);
  add_architecture(command, arguments);
  std::ranges::reverse(words);
  command.parse(words);
  if (const Status status = resolve_options(arguments, command); !status) return status.error();
  return arguments;
}

TEST(Judging, TheOptionsAreSettled) {
  EXPECT_EQ(settled({"--backend", "cpu"})->options.backend, task::Backend::kCpu);
  EXPECT_EQ(settled({"--backend", "cuda"})->options.backend, task::Backend::kCuda);
  EXPECT_EQ(settled({"--backend", "cpu", "--jobs", "3"})->options.jobs, 3);
  EXPECT_EQ(settled({"--backend", "cpu"})->options.jobs, eval::Options().jobs);
  for (const char* name : {"90", "sm_90", "compute_90"}) {
    const auto arguments = settled({"--architecture", name});
    ASSERT_TRUE(arguments) << arguments.error().message;
    EXPECT_EQ(arguments->options.architecture, "90");
    EXPECT_EQ(arguments->options.backend, task::Backend::kCuda);
  }
  EXPECT_EQ(settled({"--architecture", "mp_31"})->options.architecture, "mp_31");
  EXPECT_FALSE(settled({"--backend", "cpu", "--musa-arch", "mp_31"}));
  const auto musa = settled({"--backend", "cpu", "--dialect", "musa", "--musa-arch", "mp_22"});
  ASSERT_TRUE(musa);
  EXPECT_EQ(musa->options.dialect, task::Dialect::kMusa);
  EXPECT_EQ(musa->options.musa_architecture, "mp_22");
  EXPECT_FALSE(settled({"--backend", "tpu"}));
}

TEST(Judging, VerdictsArePrintedInTheRequestedForm) {
  report::Judged one = judged("p", task::Passed{}, 1);
  one.feedback = "the feedback";
  const auto text_for = [](const std::vector<report::Judged>& all, bool json, bool feedback) {
    EvalArguments arguments;
    arguments.json = json;
    arguments.feedback = feedback;
    testing::internal::CaptureStdout();
    print(all, arguments);
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(text_for({one, one}, true, false), report::json_line(one) + report::json_line(one));
  const std::string shown = "\n--- feedback: p\nthe feedback\n";
  EXPECT_NE(text_for({one}, false, false).find(shown), std::string::npos);
  EXPECT_EQ(text_for({one, one}, false, false).find(shown), std::string::npos);
  EXPECT_NE(text_for({one, one}, false, true).find(shown + shown), std::string::npos);
  EXPECT_NE(text_for({one, one}, false, false).find(report::summary(std::vector{one, one})),
            std::string::npos);
}

TEST(Judging, AVerdictHasItsRewardFeedbackAndTime) {
  task::Verdict verdict;
  verdict.outcome = task::Unextractable{.reason = "no_code"};
  EvalArguments arguments;
  arguments.feedback_tokens = 50;
  const auto start = std::chrono::steady_clock::now() - std::chrono::seconds(5);
  const report::Judged found = judged_since(start, verdict, arguments);
  EXPECT_EQ(found.reward, -1);
  EXPECT_GE(found.seconds, 5);
  EXPECT_LT(found.seconds, 60);
  EXPECT_NE(found.feedback.find("no_code"), std::string::npos);
  EXPECT_EQ(found.verdict, verdict);
}

// ---- The commands -------------------------------------------------------------------------------

// The verdict on an answer without code needs no device, but it needs a Python with PyTorch.
TEST_F(LoadWork, AnswersWithoutCodeAreJudged) {
  const Ended ended =
      run_line({"eval", "--backend", "cpu", "--task", "reduction/row_sum", at("candidates/a.md"),
                at("candidates/c.txt"), "--out", at("out.jsonl"), "--exit-code", "--json"});
  if (ended.code == kExitMachine) GTEST_SKIP() << ended.err;
  EXPECT_EQ(ended.code, kExitFailed) << ended.err;
  EXPECT_EQ(ended.out, text_of(fs::path(at("out.jsonl"))));
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 2);
  EXPECT_NE(ended.out.find("\"extraction\""), std::string::npos);
}

TEST_F(LoadWork, ACommandWithoutValidWorkEndsAtOnce) {
  for (const char* command : {"eval", "prepare"}) {
    std::vector<std::string> words = {command,  "--backend",         "cpu",
                                      "--task", "reduction/row_sum", at("candidates/d.cu"),
                                      "--out",  at("prepared")};
    const Ended ended = run_line(words);
    EXPECT_EQ(ended.code, kExitInput);
    EXPECT_NE(ended.err.find("is no candidate"), std::string::npos);
    EXPECT_FALSE(fs::exists(at("prepared")));
  }
  const Ended measure = run_line({"measure", "--backend", "cpu", at("candidates/a.md")});
  EXPECT_EQ(measure.code, kExitInput);
  EXPECT_NE(measure.err.find("a.md"), std::string::npos);
  put("old/00000.prepared", "");
  const Ended other = run_line({"prepare", "--backend", "cpu", "--task", "reduction/row_sum",
                                at("candidates/a.md"), "--out", at("old")});
  EXPECT_EQ(other.code, kExitInput);
  EXPECT_NE(other.err.find("has prepared candidates of another run"), std::string::npos);
}

TEST_F(LoadWork, ARecordingIsOfOneCandidateUnderPlainOptions) {
  const auto error_with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"eval",     "--backend",         "cpu",
                                      "--task",   "reduction/row_sum", at("candidates/a.md"),
                                      "--record", at("r.recording")};
    words.insert(words.end(), more.begin(), more.end());
    const Ended ended = run_line(words);
    EXPECT_EQ(ended.code, kExitInput);
    return ended.err;
  };
  EXPECT_NE(error_with({at("candidates/c.txt")}).find("--record: give one candidate"),
            std::string::npos);
  EXPECT_NE(error_with({"--policy", "kernelbench"}).find("are not recorded"), std::string::npos);
  EXPECT_NE(error_with({"--strict"}).find("leave out --strict"), std::string::npos);
  EXPECT_NE(error_with({"--race-check", "on"}).find("leave out --strict"), std::string::npos);
}

}  // namespace
}  // namespace mc::cli
