// SPDX-License-Identifier: Apache-2.0
#include "forge/conclude.h"

#include <gmock/gmock.h>

namespace mc::forge {
namespace {

constexpr const char* kPlan =
    R"({"shapes":[{"label":"native","constants":{"N":4},"reduction":null}]})";

std::string trial(const char* passed, const char* report) {
  return std::string(R"({"at":"trial","index":0,"shape":0,"distribution":"native","error":null,)") +
         R"("sticky":"","aten":{},"report":[)" + report + R"(],"check":{"ok":true,"passed":)" +
         passed + R"(,"checks":[],"inputs_mutated":""}})";
}

std::string run(const std::string& trials, const char* more = "") {
  return R"({"load":{"error":null,"report":[]},"builds":[],"trials":[)" + trials + "]" + more + "}";
}

constexpr const char* kCall =
    R"("{\"call\":1,\"launches\":1,\"digest\":\"0\",\"kernel\":16,\"fill\":0,\"given\":0,)"
    R"(\"host\":0,\"nowhere\":0,\"reads_given\":true,\"unknown_reads\":0}")";

std::string name_of(const std::string& ran) {
  const auto outcome =
      conclude(kPlan, ran, [](std::string_view, uint64_t) { return task::SourceLocation{}; });
  return outcome ? task::outcome_name(*outcome) : outcome.error().message;
}

TEST(Conclude, PassesWhatPassedEveryTrial) {
  EXPECT_EQ(name_of(run(trial("true", kCall))), "pass");
}

TEST(Conclude, IsWrongWhereATrialFailed) {
  EXPECT_EQ(name_of(run(trial("false", kCall))), "wrong");
}

TEST(Conclude, IsIllegalWithoutALaunch) {
  EXPECT_EQ(name_of(run(trial("true", "\"{}\""))), "illegal");
}

TEST(Conclude, SaysOfWrongValuesThatTheyAreWrongThoughNothingWasLaunched) {
  constexpr const char* kIdle =
      R"("{\"call\":1,\"launches\":0,\"digest\":\"0\",\"kernel\":0,\"fill\":0,\"given\":0,)"
      R"(\"host\":0,\"nowhere\":16,\"reads_given\":true,\"unknown_reads\":0}")";
  EXPECT_EQ(name_of(run(trial("false", kIdle))), "wrong");
  EXPECT_EQ(name_of(run(trial("true", kIdle))), "illegal");
}

TEST(Conclude, IsWrongWhereTheEmulatorFoundARace) {
  const std::string race =
      R"("{\"kind\":\"shared_race\",\"kernel\":\"k\",\"block\":[0,0,0],\"thread\":[0,0,0],)"
      R"(\"pc\":1,\"module\":\"m\",\"other_pc\":0,\"detail\":\"\"}",)";
  EXPECT_EQ(name_of(run(trial("true", (race + kCall).c_str()))), "wrong");
}

TEST(Conclude, IsARuntimeFaultWhereTheProcessDied) {
  EXPECT_EQ(name_of(run("", R"(,"died":"signal 11","last_report":[])")), "runtime");
}

TEST(Conclude, IsATimeOutWhereItTookTooLong) {
  EXPECT_EQ(name_of(run("", R"(,"died":"timeout")")), "timeout");
}

TEST(Conclude, RefusesWhatItDoesNotUnderstand) {
  EXPECT_THAT(name_of("[]"), ::testing::HasSubstr("not understood"));
}

}  // namespace
}  // namespace mc::forge
