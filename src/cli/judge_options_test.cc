// SPDX-License-Identifier: Apache-2.0
#include "cli/learn/judge_options.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace mc::learn {
namespace {

using Words = std::vector<std::string>;

// The arguments after the verifier's program.
Words words_of(const JudgeArguments& arguments) {
  Words words = judge_command(arguments, /*seed=*/5).value();
  EXPECT_TRUE(words.at(0).ends_with("bin/musacoder")) << words[0];
  words.erase(words.begin());
  return words;
}

TEST(JudgeCommand, IsTheVerifierInTheProgramsFolderWithTheGivenOptions) {
  JudgeArguments arguments;
  arguments.jobs = 3;
  arguments.feedback_tokens = 77;
  const Words common = {"eval", "--stream",          "--seed", "5", "--jobs",
                        "3",    "--feedback-tokens", "77"};
  const auto with = [&](const Words& more) {
    Words words = common;
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  EXPECT_EQ(words_of(arguments),
            with({"--backend", "auto", "--dialect", "cuda", "--timing", "quick"}));
  arguments.backend = "cpu", arguments.dialect = "musa", arguments.timing = "none";
  EXPECT_EQ(words_of(arguments), with({"--backend", "cpu", "--dialect", "musa", "--no-timing"}));
}

TEST(JudgeCommand, OfAnotherVerifierIsSplitIntoWords) {
  EXPECT_EQ(judge_command({.command = "  python  -m judge --fast "}, 5).value(),
            (Words{"python", "-m", "judge", "--fast"}));
}

TEST(JudgeCommand, OfBlanksIsRejected) {
  const auto words = judge_command({.command = "  "}, 5);
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().message, "--judge: expected a command, got blanks");
}

}  // namespace
}  // namespace mc::learn
