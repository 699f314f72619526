// SPDX-License-Identifier: Apache-2.0
#include "cli/judging.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cli/commands.h"
#include "core/file.h"

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
  const auto results = Results::create(path).value();
  results->add(second);  // The second verdict was ready before the first.
  results->add(first);
  EXPECT_EQ(text_of(part), report::json_line(second) + report::json_line(first));
  EXPECT_FALSE(fs::exists(path));
  ASSERT_TRUE(results->finish({first, second}));
  EXPECT_EQ(text_of(path), report::json_line(first) + report::json_line(second));
  EXPECT_FALSE(fs::exists(part));
}

TEST(ResultsFile, IsNotWrittenWithoutAName) {
  const auto results = Results::create("").value();
  results->add(judged("a", task::Passed{}, 1));
  EXPECT_TRUE(results->finish({}));
}

TEST(ResultsFile, ThatCannotBeWrittenIsReportedAtOnce) {
  const auto results = Results::create("/dev/null/none/out.jsonl");
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().message,
            "--out: cannot write /dev/null/none/out.jsonl.part: Not a directory");
}

}  // namespace
}  // namespace mc::cli
