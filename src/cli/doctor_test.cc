// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Fact kGxx{"compilers", "g++", State::kPresent, "12.2.0", ""};
const Fact kCpu{"backends", "cpu", State::kPresent, "by emulation", ""};
const Fact kNoGpu{"backends", "cuda", State::kOptional, "no NVIDIA GPU", ""};
const Fact kNoGxx{"compilers", "g++", State::kMissing, "not found", "apt-get install g++"};
const Fact kNoNamespace{"sandbox", "user_namespace", State::kMissing, "not permitted",
                        "sysctl -w kernel.unprivileged_userns_clone=1"};

TEST(Doctor, ReportsThatACompleteMachineCanJudge) {
  const std::vector<Fact> facts = {kGxx, kNoGpu, kCpu};
  EXPECT_TRUE(can_judge(facts));
  EXPECT_EQ(doctor_report(facts),
            "compilers\n"
            "  ok      g++                 12.2.0\n"
            "backends\n"
            "  none    cuda                no NVIDIA GPU\n"
            "  ok      cpu                 by emulation\n"
            "\n"
            "This machine can judge candidates with the cpu backend.\n");
}

TEST(Doctor, NamesTheBackendOfAnExistingGpu) {
  const Fact cuda{"backends", "cuda", State::kPresent, "judges and times on device 0", ""};
  EXPECT_THAT(doctor_report({kGxx, cuda, kCpu}),
              HasSubstr("This machine can judge candidates with the cuda and cpu backends.\n"));
}

TEST(Doctor, PrintsTheCommandThatInstallsAMissingPart) {
  const std::vector<Fact> facts = {kNoGxx, kNoGpu};
  EXPECT_FALSE(can_judge(facts));
  EXPECT_EQ(doctor_report(facts),
            "compilers\n"
            "  MISSING g++                 not found\n"
            "                              to add: apt-get install g++\n"
            "backends\n"
            "  none    cuda                no NVIDIA GPU\n"
            "\n"
            "This machine cannot judge candidates yet. First:\n"
            "  apt-get install g++\n");
}

TEST(Doctor, ReportsHowToContinueWithoutAProtection) {
  EXPECT_THAT(doctor_report({kNoNamespace}), HasSubstr("--allow-weak-sandbox"));
  EXPECT_THAT(doctor_report({kNoGxx}), Not(HasSubstr("--allow-weak-sandbox")));
}

TEST(Doctor, PrintsACommandOnceForConsecutiveFacts) {
  const Fact other{"compilers", "clang", State::kMissing, "not found", "apt-get install clang"};
  EXPECT_THAT(doctor_report({kNoGxx, kNoGxx, other}),
              HasSubstr("  MISSING g++                 not found\n"
                        "  MISSING g++                 not found\n"
                        "                              to add: apt-get install g++\n"
                        "  MISSING clang               not found\n"
                        "                              to add: apt-get install clang\n"));
}

TEST(Doctor, PrintsACommandOnceAtTheEnd) {
  const std::string report = doctor_report({kNoGxx, kNoGxx});
  const std::string end = report.substr(report.find("First:"));
  EXPECT_EQ(end, "First:\n  apt-get install g++\n");
}

// Two backends: one for a device, and one without needs of its own.
std::vector<Fact> look_for_musa(const compile::PyTorch* pytorch) {
  const State state = pytorch == nullptr ? State::kMissing : State::kPresent;
  return {{"MUSA", "driver", state, "4.0", ""}, {"MUSA", "tool", State::kOptional, "", ""}};
}
const eval::Backend kDevices{task::Backend::kMusa, nullptr, nullptr,
                             "judges on a device", nullptr, look_for_musa};
const eval::Backend kEverywhere{task::Backend::kCpu, nullptr, nullptr, "judges everywhere"};
constexpr const eval::Backend* kBackends[] = {&kDevices, &kEverywhere};

std::vector<std::string> answers(const compile::PyTorch* pytorch, const Fact& common) {
  std::vector<std::string> lines;
  for (const Fact& fact : backend_facts(kBackends, pytorch, {common})) {
    if (fact.section == "backends") lines.push_back(fact.name + ": " + fact.detail);
  }
  return lines;
}

TEST(Doctor, ReportsTheNeedsOfEachBackend) {
  const compile::PyTorch pytorch;
  EXPECT_THAT(answers(&pytorch, kGxx),
              ElementsAre("musa: judges on a device", "cpu: judges everywhere"));
  EXPECT_THAT(answers(nullptr, kGxx),
              ElementsAre("musa: needs what MUSA lists", "cpu: judges everywhere"));
  EXPECT_THAT(answers(&pytorch, kNoGxx),
              ElementsAre("musa: needs what MUSA lists", "cpu: needs what is missing above"));
}

TEST(Doctor, NeedsNoDevice) {
  EXPECT_TRUE(can_judge(backend_facts(kBackends, nullptr, {kGxx})));
  EXPECT_FALSE(can_judge(backend_facts(kBackends, nullptr, {kNoGxx})));
}

TEST(Doctor, ProbesThisMachineWithoutAnError) {
  const std::vector<Fact> facts = probe_machine();
  for (const char* name : {"memory", "g++", "cache", "cpu", "cuda", "seccomp"}) {
    EXPECT_TRUE(std::any_of(facts.begin(), facts.end(), [&](const Fact& fact) {
      return fact.name == name;
    })) << name;
  }
  for (const Fact& fact : facts) {
    EXPECT_EQ(fact.detail.find('\n'), std::string::npos) << fact.name;
    EXPECT_TRUE(fact.state == State::kPresent || !fact.detail.empty()) << fact.name;
  }
}

}  // namespace
}  // namespace mc::cli
