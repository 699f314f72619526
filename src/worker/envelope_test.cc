// SPDX-License-Identifier: Apache-2.0
#include "worker/envelope.h"

#include <gmock/gmock.h>

namespace mc::worker {
namespace {

TEST(Envelope, DistinguishesRepliesFromErrorReplies) {
  EXPECT_TRUE(is_ok(R"({"ok": true})"));
  for (const char* text :
       {"", "[]", "{}", R"({"ok": 1})", R"({"ok": "true"})", R"({"ok": false})"}) {
    EXPECT_FALSE(is_ok(text)) << text;
  }
}

TEST(Envelope, DetectsDeeplyNestedJson) {
  const auto nested = [](size_t depth, const std::string& inside) {
    return std::string(depth, '[') + inside + std::string(depth, ']');
  };
  EXPECT_FALSE(nests_too_deeply(""));
  EXPECT_FALSE(nests_too_deeply(nested(200, "1")));
  EXPECT_FALSE(nests_too_deeply("[" + nested(100, "") + "," + nested(200, "") + "]"));
  EXPECT_FALSE(nests_too_deeply('"' + nested(1000, R"(\"")") + '"'));
  EXPECT_TRUE(nests_too_deeply(nested(300, "1")));
  EXPECT_TRUE(nests_too_deeply(std::string(300, '{')));
  EXPECT_TRUE(nests_too_deeply(R"(["\", ""[", )" + nested(300, "") + "]"));
}

TEST(Envelope, ReadsTheNamesOfMissingProtections) {
  const auto names = decode_protections(
      R"({"ok": true, "missing": [{"protection": "seccomp", "why": "old kernel"},
                                  {"protection": "uts_namespace", "why": ""}]})");
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ::testing::ElementsAre("seccomp", "uts_namespace"));
  EXPECT_THAT(decode_protections(R"({"missing": []})").value(), ::testing::IsEmpty());
}

TEST(Envelope, RejectsAMissingOrMalformedListOfProtections) {
  for (const char* text :
       {"{}", R"({"missing": null})", R"({"missing": [{}]})", R"({"missing": [{"protection": 3}]})",
        R"({"missing": ["seccomp"]})", R"({"missing": [{"protection": "no_such_protection"}]})"}) {
    EXPECT_FALSE(decode_protections(text)) << text;
  }
}

TEST(Envelope, KeepsTheInnermostFrameOfAnException) {
  const auto refusal = decode_refusal(
      R"({"ok": false, "error": {"kind": "exception", "type": "ValueError", "message": "no",
          "frames": [{"source": "candidate", "line": 3, "text": "a"},
                     {"source": "candidate", "line": 9, "text": "b"}]}})");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exception.location.line, 9);
  EXPECT_EQ(refusal->exception.frames.size(), 2u);
}

}  // namespace
}  // namespace mc::worker
