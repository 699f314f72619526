// SPDX-License-Identifier: Apache-2.0
#include "cli/prompts.h"

#include <filesystem>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Layout kLayout{MC_PREFIX_DIR};

std::string prompt_of(const std::string& name, task::Dialect dialect) {
  std::vector<sample::Item> items(1);
  items[0].task.code = "class Model: pass";
  items[0].prompt = {{"user", "the suite's"}};
  eval::Options judging;
  judging.dialect = dialect;
  const Status done = apply_prompt_template(name, kLayout, judging, items);
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(items[0].prompt.size(), 1U);
  return items[0].prompt[0].content;
}

TEST(Prompts, AllTemplatesOfTheFolderHaveNamesAndCanBeFilled) {
  std::set<std::string> names = {kCardPrompt};
  for (const auto& entry : std::filesystem::directory_iterator(kLayout.share("data/prompts"))) {
    if (entry.path().extension() == ".txt") names.insert(entry.path().stem());
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(names, ", ")), kPromptNames);
  names.erase(kCardPrompt);
  for (const std::string& name : names) {
    for (const task::Dialect dialect : {task::Dialect::kCuda, task::Dialect::kMusa}) {
      EXPECT_THAT(prompt_of(name, dialect), AllOf(HasSubstr("class Model: pass"),
                                                  HasSubstr("ModelNew"), Not(HasSubstr("{{"))))
          << name;
    }
  }
  EXPECT_EQ(prompt_of(kCardPrompt, task::Dialect::kCuda), "the suite's");
}

TEST(Prompts, ExamplesAreInTheRequestedDialect) {
  for (const char* name : {"kernelbench", "one-shot"}) {
    EXPECT_THAT(prompt_of(name, task::Dialect::kCuda),
                AllOf(HasSubstr("cuda_sources="), Not(HasSubstr("MUSA"))));
    EXPECT_THAT(prompt_of(name, task::Dialect::kMusa),
                AllOf(HasSubstr("musa_sources="), Not(HasSubstr("cuda_sources="))));
  }
}

TEST(Prompts, HardwareHasTheSizesOfTheDevice) {
  EXPECT_THAT(
      prompt_of("hardware", task::Dialect::kCuda),
      AllOf(HasSubstr("132 multiprocessors"), HasSubstr("227 KiB"), HasSubstr("in software")));
  const execute::CudaDevice device{"A GPU", "GPU-0",   9,        0,      int64_t{80} << 30,
                                   132,     227 << 10, 50 << 20, 3352.32};
  EXPECT_EQ(facts_of(device),
            "- A GPU, compute capability 9.0, 132 multiprocessors, 32 threads a warp\n"
            "- shared memory: at most 227 KiB a block\n"
            "- L2 cache: 50 MiB\n"
            "- memory: 80 GiB, at most 3352 GB/s");
}

TEST(Prompts, HardwareOfMusaDependsOnItsArchitecture) {
  std::vector<sample::Item> items(1);
  items[0].task.code = "class Model: pass";
  eval::Options judging;
  judging.dialect = task::Dialect::kMusa;
  judging.musa_architecture = "mp_22";
  judging.backend = task::Backend::kCpu;
  ASSERT_TRUE(apply_prompt_template("hardware", kLayout, judging, items));
  EXPECT_THAT(items[0].prompt[0].content,
              AllOf(HasSubstr("56 multiprocessors"), HasSubstr("128 threads a warp"),
                    HasSubstr("6144 threads"), HasSubstr("shared memory: 72 KiB a block\n")));
}

TEST(Prompts, ListsTheKnownNamesForAnUnknownOne) {
  std::vector<sample::Item> items(1);
  const Status done = apply_prompt_template("kernelbensh", kLayout, {}, items);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message,
              HasSubstr("kernelbensh is no file, and none of card, hardware"));
}

}  // namespace
}  // namespace mc::cli
