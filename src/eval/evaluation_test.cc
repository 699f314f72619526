// SPDX-License-Identifier: Apache-2.0
#include "eval/evaluation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>

#include "core/file.h"
#include "eval/baseline_store.h"
#include "eval/judge_pool.h"
#include "eval/machine.h"
#include "eval/preparer.h"
#include "execute/children.h"
#include "legality/policy.h"

namespace mc::eval {
namespace {

class EvaluationTest : public testing::Test {
 protected:
  task::Verdict evaluate(const task::Candidate& candidate) {
    const Parts parts{options_, key_,    policy_, run_policy_, executor_, machine_,
                      judges_,  nullptr, share_,  memory_,     baselines_};
    const task::Task task{"task", "task", "class Model: pass"};
    return Evaluation(parts, {task, candidate, {}, "", "", {}, {}}).run();
  }

  Preparation prepare(const task::Candidate& candidate) {
    Preparer preparer(options_, policy_, machine_, executor_);
    return preparer.prepare({"task", "task", "class Model: pass"}, candidate);
  }

  // Processes that end at once: nothing that needs one comes about.
  static std::unique_ptr<execute::Zygote> none() {
    execute::ZygoteOptions options;
    options.python = "/bin/false";
    return execute::Zygote::start(options).value();
  }

  TemporaryDirectory folder_ = TemporaryDirectory::create("mc-evaluation").value();
  Options options_;
  SeedKey key_ = SeedKey::from(1);
  legality::Policy policy_;
  execute::RunPolicy run_policy_;
  std::unique_ptr<execute::Zygote> trusted_ = none();
  std::unique_ptr<execute::Zygote> candidates_ = none();
  execute::Executor executor_{{*trusted_, *candidates_}, {}, {}};
  Machine machine_;
  JudgePool judges_;
  DeviceShare share_;
  DeviceMemory memory_{0};
  BaselineStore baselines_{folder_.path()};
};

TEST_F(EvaluationTest, EndsAloneWhereSomethingThrows) {
  policy_.python_json = "{";  // Which no policy file can hold; the parser throws.
  const Preparation preparation = prepare({"a", "class ModelNew: pass\n"});
  const auto& verdict = std::get<task::Verdict>(preparation);
  ASSERT_TRUE(std::holds_alternative<task::Infra>(verdict.outcome));
  EXPECT_NE(std::get<task::Infra>(verdict.outcome).message.find("exception: "), std::string::npos);
  EXPECT_EQ(verdict.candidate, "a");
}

TEST_F(EvaluationTest, GivesEveryCandidateASeedOfItsOwn) {
  const uint64_t seed = evaluate({"a", "1"}).seed;
  EXPECT_EQ(evaluate({"a", "1"}).seed, seed);
  EXPECT_NE(evaluate({"a", "2"}).seed, seed);
  EXPECT_NE(evaluate({"b", "1"}).seed, seed);
  EXPECT_NE(seed, 1u);  // The key's own number is told to nobody.
  key_ = SeedKey::from(2);
  EXPECT_NE(evaluate({"a", "1"}).seed, seed);
}

}  // namespace
}  // namespace mc::eval
