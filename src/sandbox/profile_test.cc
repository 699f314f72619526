// SPDX-License-Identifier: Apache-2.0
#include "sandbox/profile.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::sandbox {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

TEST(Profile, RoundTripsThroughJson) {
  Profile profile;
  profile.limits = {.cpu = std::chrono::seconds(1),
                    .wall = std::chrono::milliseconds(2),
                    .memory_bytes = 3,
                    .file_bytes_max = 4,
                    .files_max = 5,
                    .threads_max = 6,
                    .tmp_bytes = 7,
                    .niceness = 8};
  profile.allow_exec = true;
  profile.allow_sockets = true;
  profile.only_visible = true;
  profile.artifacts = "/e";
  profile.writable = {"/a"};
  profile.visible = {"/b"};
  profile.hidden = {"/c"};
  profile.devices = {"/dev/d"};
  profile.optional = {Protection::kSeccomp};
  profile.off = {Protection::kUtsNamespace};
  const auto parsed = parse_profile(to_json(profile));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(to_json(*parsed), to_json(profile));
  EXPECT_TRUE(parsed->allow_sockets);
  EXPECT_TRUE(parsed->only_visible);
  EXPECT_EQ(parsed->artifacts, "/e");
  EXPECT_EQ(parsed->limits.tmp_bytes, 7U);
  EXPECT_EQ(parsed->limits.niceness, 8);
  EXPECT_EQ(parsed->off, profile.off);
}

TEST(Profile, HasDefaultsForWhatIsLeftOut) {
  const auto parsed = parse_profile("{}");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(to_json(*parsed), to_json(Profile{}));
}

struct Bad {
  const char* json;
  const char* message;
};

class BadProfile : public testing::TestWithParam<Bad> {};

TEST_P(BadProfile, IsRefusedWithTheReason) {
  const auto parsed = parse_profile(GetParam().json);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(parsed.error().message, testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    , BadProfile,
    testing::Values(Bad{"", "not a JSON object"}, Bad{"[]", "not a JSON object"},
                    Bad{R"({"x": 1})", "\"x\" is unknown"},
                    Bad{R"({"limits": {"x": 1}})", "\"x\" is unknown"},
                    Bad{R"({"limits": 1})", "\"limits\" is not an object"},
                    Bad{R"({"limits": {"cpu_s": 0}})", "\"cpu_s\" is out of range"},
                    Bad{R"({"limits": {"files_max": -1}})", "not a whole number"},
                    Bad{R"({"limits": {"niceness": 20}})", "\"niceness\" is out of range"},
                    Bad{R"({"limits": {"niceness": -1}})", "not a whole number"},
                    Bad{R"({"allow_exec": 1})", "not true or false"},
                    Bad{R"({"writable": ["a"]})", "relative path: a"},
                    Bad{R"({"writable": "/a"})", "not a list"},
                    Bad{R"({"off": ["x"]})", "unknown protection: \"x\""}));

TEST(Protection, IsFoundByItsName) {
  for (const Protection protection : kAllProtections) {
    EXPECT_EQ(protection_named(name_of(protection)), protection);
  }
  EXPECT_FALSE(protection_named("none").has_value());
}

TEST(SecretPaths, AreBelowTheHomeInUseTheCallersAndTheSuperusers) {
  const char* before = getenv("HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("HOME", "/elsewhere", 1);
  const std::vector<std::string> paths = secret_paths();
  EXPECT_THAT(paths, Contains("/elsewhere/.ssh"));
  for (const uid_t user : {getuid(), uid_t{0}}) {
    const passwd* entry = getpwuid(user);
    if (entry == nullptr) continue;
    EXPECT_THAT(paths, Contains(std::string(entry->pw_dir) + "/.netrc"));
  }
  EXPECT_THAT(std::set(paths.begin(), paths.end()), SizeIs(paths.size())) << "none twice";
  if (before == nullptr) {
    unsetenv("HOME");
  } else {
    setenv("HOME", kept.c_str(), 1);
  }
}

}  // namespace
}  // namespace mc::sandbox
