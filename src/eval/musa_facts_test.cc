// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_facts.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using testing::HasSubstr;

MusaFindings all_there() {
  MusaFindings found;
  found.mcc = "/usr/local/musa/bin/mcc";
  found.has_mcc = found.has_torch_musa = found.is_patched_pytorch = true;
  found.nodes = {"/dev/mtgpu.0"};
  found.driver = execute::CudaDriver{5, 1, {{"MTT S5000", "GPU-0", 3, 1, int64_t{80} << 30}}};
  found.python = "/opt/python";
  return found;
}

TEST(MusaFacts, AreAllPresentOnACompleteMachine) {
  for (const Fact& fact : musa_facts(all_there())) {
    EXPECT_EQ(fact.section, "MUSA");
    EXPECT_EQ(fact.state, State::kPresent) << fact.name;
    EXPECT_EQ(fact.remedy, "");
  }
}

TEST(MusaFacts, SayWhatIsMissingAndHowToAddIt) {
  MusaFindings found;
  found.mcc = "/opt/musa/bin/mcc";
  found.driver = Error{ErrorCode::kNotFound, "libmusa.so: cannot open shared object file"};
  const std::vector<Fact> facts = musa_facts(found);
  EXPECT_EQ(facts.size(), 5u);
  for (const Fact& fact : facts) {
    EXPECT_EQ(fact.state, State::kMissing) << fact.name;
    EXPECT_NE(fact.remedy, "");
  }
  EXPECT_EQ(facts[0].detail, "no /opt/musa/bin/mcc");
  EXPECT_THAT(facts[0].remedy, HasSubstr("MUSA_HOME"));
  EXPECT_THAT(facts[1].detail, HasSubstr("libmusa.so"));
}

TEST(MusaFacts, DetectAPyTorchWithoutThePatches) {
  MusaFindings found = all_there();
  found.is_patched_pytorch = false;
  const std::vector<Fact> facts = musa_facts(found);
  const auto is_missing = [](const Fact& fact) { return fact.state == State::kMissing; };
  EXPECT_EQ(std::ranges::count_if(facts, is_missing), 1);
}

}  // namespace
}  // namespace mc::eval
