// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_arguments.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mc::cli {
namespace {

BenchArguments arguments_of_answers() {
  BenchArguments arguments;
  arguments.answers = "/data/answers.jsonl";
  return arguments;
}

std::vector<sample::Item> items() {
  sample::Item item;
  item.task.id = "t";
  item.task.code = "class Model: pass";
  item.prompt = {{"user", "Rewrite it."}};
  return {item};
}

TEST(BenchRun, HasTheNameOfItsSourceByDefault) {
  const auto name = [](const std::function<void(BenchArguments&)>& set) {
    BenchArguments arguments;
    set(arguments);
    return name_of(arguments);
  };
  EXPECT_EQ(name([](auto& a) { a.model = "/models/small"; }), "small");
  EXPECT_EQ(name([](auto& a) { a.model = "/models/small/"; }), "small");
  EXPECT_EQ(name([](auto& a) { a.model = "/models/small-1.5"; }), "small-1.5");
  EXPECT_EQ(name([](auto& a) { a.answers = "/data/first.jsonl"; }), "first");
  EXPECT_EQ(name([](auto& a) { a.runs = "/data/run.1"; }), "run.1");
  EXPECT_EQ(name([](auto& a) { a.endpoint = "http://h/v1", a.model_name = "org/m"; }), "org/m");
  EXPECT_EQ(name([](auto& a) { a.model = "/models/small", a.run = "mine"; }), "mine");
}

// A run resumes if its settings are equal: they must contain every option that influences a figure,
// and no option that influences only the execution or the display.
TEST(BenchSettings, ContainExactlyTheOptionsThatInfluenceFigures) {
  using Set = std::function<void(BenchArguments&)>;
  const std::string before = settings_of(arguments_of_answers(), items());
  const std::vector<std::pair<const char*, Set>> decide = {
      {"source", [](auto& a) { a.answers = "other.jsonl"; }},
      {"turns", [](auto& a) { a.course.turns = 3; }},
      {"feedback_tokens", [](auto& a) { a.course.feedback_tokens = 77; }},
      {"temperature", [](auto& a) { a.sampling.temperature = 0.123; }},
      {"top_p", [](auto& a) { a.sampling.top_p = 0.123; }},
      {"max_tokens", [](auto& a) { a.sampling.tokens_max = 77; }},
      {"sampling_seed", [](auto& a) { a.sampling_seed = 77; }},
      {"extra_body", [](auto& a) { a.extra_body = R"({"top_k": 20})"; }},
      {"prompt_template", [](auto& a) { a.prompt_template = "/p/card.md"; }},
      {"options", [](auto& a) { a.given["--trials"] = {"3"}; }},
      {"also", [](auto& a) { a.protocol = "strict"; }},
      {"dialect", [](auto& a) { a.judging.options.dialect = task::Dialect::kMusa; }},
  };
  for (const auto& [name, set] : decide) {
    BenchArguments arguments = arguments_of_answers();
    set(arguments);
    const std::string now = settings_of(arguments, items());
    EXPECT_NE(now, before) << name;
    EXPECT_TRUE(nlohmann::json::parse(now).contains(name)) << name;
  }
  const std::vector<Set> other = {
      [](auto& a) { a.out = "elsewhere"; },       [](auto& a) { a.json = a.details = true; },
      [](auto& a) { a.course.concurrency = 77; }, [](auto& a) { a.judging.jobs = 77; },
      [](auto& a) { a.headers = {"a: b"}; },      [](auto& a) { a.retries = 7; },
      [](auto& a) { a.against = "elsewhere"; },   [](auto& a) { a.batch = 77; },
      [](auto& a) { a.prices = {1, 2}; }};
  for (const Set& set : other) {
    BenchArguments arguments = arguments_of_answers();
    set(arguments);
    EXPECT_EQ(settings_of(arguments, items()), before);
  }
  std::vector<sample::Item> changed = items();
  changed[0].task.code += "\n";
  EXPECT_NE(settings_of(arguments_of_answers(), changed), before);
  changed = items();
  changed[0].prompt[0].content += " ";
  EXPECT_NE(settings_of(arguments_of_answers(), changed), before);
}

TEST(OtherProtocol, HasTheOptionsOfTheMainRunAndItsOwn) {
  BenchArguments first = arguments_of_answers();
  first.against = "earlier";
  first.given["--timing"] = {"full"};
  const BenchArguments other = other_protocol(first, "strict,trials=3,race-check=on").value();
  EXPECT_EQ(name_of(other), "answers (strict,trials=3,race-check=on)");
  EXPECT_EQ(other.protocol, "strict,trials=3,race-check=on");
  EXPECT_EQ(other.judging.options.race_check, eval::RaceCheckMode::kOn);
  EXPECT_EQ(other.against, "");
  EXPECT_TRUE(other.judging.options.strict);
  EXPECT_EQ(other.judging.options.correctness.trials, 3);
  EXPECT_EQ(other.given.at("--timing"), (std::vector<std::string>{"full"}));
  EXPECT_EQ(other.given.at("--trials"), (std::vector<std::string>{"3"}));
}

TEST(OtherProtocol, ThatIsInvalidIsNamed) {
  const struct {
    const char* protocol;
    const char* message;
  } kTable[] = {
      {"nosuch", "--also nosuch: unknown option --nosuch"},
      {"race-check=yes",
       "--also race-check=yes: --race-check: expected auto, on or off, got \"yes\""},
      {"trials=0", "--also trials=0: --trials: expected a whole number from 1 to 100, got \"0\""},
      {"backend=tpu",
       "--also: no backend or architecture is called 'tpu': use auto, cuda, musa, cpu"},
  };
  for (const auto& row : kTable) {
    const auto other = other_protocol(arguments_of_answers(), row.protocol);
    ASSERT_FALSE(other) << row.protocol;
    EXPECT_EQ(other.error().message, row.message);
    EXPECT_EQ(other.error().code, ErrorCode::kInvalidInput);
  }
}

}  // namespace
}  // namespace mc::cli
