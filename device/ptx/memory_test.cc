// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "ptx/finding_log.h"
#include "ptx/global_memory.h"
#include "ptx/lexer.h"
#include "ptx/program.h"
#include "ptx/types.h"

namespace mc::ptx {
namespace {

using testing::ElementsAre;

TEST(PtxGlobalMemory, GivesTheSameAddressesEachTime) {
  for (int run = 0; run < 2; ++run) {
    const auto memory = GlobalMemory::create(1 << 20).value();
    EXPECT_EQ(memory->allocate(100, "a").value(), kGlobalBase);
    EXPECT_EQ(memory->allocate(300, "b").value(), kGlobalBase + 512);
  }
}

TEST(PtxGlobalMemory, KnowsTheAllocationOfAnAddress) {
  const auto memory = GlobalMemory::create(1 << 20).value();
  const uint64_t a = memory->allocate(100, "a").value();
  EXPECT_EQ(memory->find(a + 99)->name, "a");
  EXPECT_EQ(memory->find(a + 100), nullptr);
  EXPECT_EQ(memory->find(a - 1), nullptr);
  EXPECT_EQ(memory->find_before(a + 5000)->name, "a");
  EXPECT_NE(memory->host(a + 50, 50), nullptr);
  EXPECT_EQ(memory->host(a + 50, 51), nullptr);
}

TEST(PtxShadowMemory, BeginsAnewWhereItsClockIsFull) {
  const auto shadow = ShadowMemory::create(1 << 12).value();
  shadow->begin_launch();
  shadow->rows().lines[3].written = {*shadow->now(), 0xF, 0, 0};
  EXPECT_EQ(shadow->written_in(3), 0xFU);
  shadow->begin_launch();
  EXPECT_EQ(shadow->written_in(3), 0U);
  shadow->rows().lines[3].written = {kTimesFull + 1, 0xF, 0, 0};
  *shadow->now() = kTimesFull + 1;
  shadow->begin_launch();
  EXPECT_EQ(*shadow->now(), 1U);
  EXPECT_EQ(shadow->written_in(3), 0U);
}

TEST(PtxGlobalMemory, TakesReleasedPlacesAgain) {
  const auto memory = GlobalMemory::create(1 << 12).value();
  for (int k = 0; k < 100; ++k) {
    const auto a = memory->allocate(2000, "a");
    ASSERT_TRUE(a);
    EXPECT_TRUE(memory->release(*a));
  }
  EXPECT_TRUE(memory->allocate(2000, "a"));
  EXPECT_EQ(memory->allocate(2000, "b").error().code, ErrorCode::kExhausted);
}

TEST(PtxGlobalMemory, AllocatesAtAGivenAddressOfAReservedRange) {
  const auto memory = GlobalMemory::create(8 << 20).value();
  ASSERT_TRUE(memory->allocate(100, "before"));
  const uint64_t range = memory->reserve(4 << 20).value();
  EXPECT_EQ(range % (2 << 20), 0U);
  ASSERT_TRUE(memory->allocate_at(range + 512, 10, "a"));
  EXPECT_EQ(memory->find(range + 521)->name, "a");
  EXPECT_EQ(memory->find(range + 522), nullptr);
  EXPECT_FALSE(memory->allocate_at(range + 500, 13, "overlaps its begin"));
  EXPECT_FALSE(memory->allocate_at(range + 521, 5, "overlaps its end"));
  EXPECT_FALSE(memory->allocate_at(range + (4 << 20) - 4, 5, "runs out of the range"));
  EXPECT_TRUE(memory->allocate_at(range + 522, 5, "beside it"));
  EXPECT_GE(memory->allocate(100, "after").value(), range + (4 << 20));
}

TEST(PtxGlobalMemory, ReservesFromAWantedAddressOn) {
  const auto memory = GlobalMemory::create(16 << 20).value();
  const uint64_t first = memory->reserve(2 << 20).value();
  const uint64_t second = memory->reserve(2 << 20, first + (8 << 20)).value();
  EXPECT_EQ(second, first + (8 << 20));
  EXPECT_FALSE(memory->allocate_at(first + (4 << 20), 4, "between the ranges"));
  EXPECT_EQ(memory->reserve(2 << 20, first).value(), second + (2 << 20)) << "that is taken";
  EXPECT_FALSE(memory->reserve(2 << 20, first + (64 << 20)));
}

TEST(PtxGlobalMemory, GivesPagesOfAReservedRangeBack) {
  const auto memory = GlobalMemory::create(8 << 20).value();
  const uint64_t range = memory->reserve(4 << 20).value();
  ASSERT_TRUE(memory->allocate_at(range, 3 * 4096, "a"));
  memory->host(range + 4096, 1)[0] = 7;
  ASSERT_TRUE(memory->release(range));
  ASSERT_TRUE(memory->allocate_at(range, 3 * 4096, "b"));
  EXPECT_EQ(memory->host(range + 4096, 1)[0], 0);
}

Finding finding_at(int line) {
  Finding finding;
  finding.kind = FindingKind::kSharedRace;
  finding.kernel = "k";
  finding.file = "/somewhere/a.cu";
  finding.line = line;
  finding.detail = "text";
  return finding;
}

TEST(PtxFindingLog, CountsEqualFindingsAndKeepsTheFirst) {
  FindingLog log;
  Finding first = finding_at(3), second = finding_at(3);
  first.thread = ThreadPosition{{2, 0, 0}, {5, 0, 0}};
  second.thread = ThreadPosition{{9, 0, 0}, {1, 0, 0}};
  log.add(first);
  log.add(second);
  log.add(finding_at(2));
  const std::vector<Finding> all = log.findings();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].line, 2);
  EXPECT_EQ(describe(all[1]),
            "shared_race: kernel k, a.cu:3: text; thread (5,0,0) of block (2,0,0); 2 times");
}

TEST(PtxFindingLog, KeepsABoundedText) {
  FindingLog log;
  for (int k = 0; k < 3000; ++k) log.print(std::string(1000, 'x'));
  EXPECT_EQ(log.printed().size(), size_t{1} << 20);
}

TEST(PtxFindings, HaveTheNamesOfVerdicts) {
  const std::pair<FindingKind, std::string_view> names[] = {
      {FindingKind::kSharedRace, "shared_race"},
      {FindingKind::kUnwrittenCopy, "uninitialised_copy"},
      {FindingKind::kUnwrittenGlobal, "uninitialised_global"},
      {FindingKind::kShuffleSource, "deadlock"},
      {FindingKind::kOutOfBoundsWrite, "out_of_bounds_write"},
      {FindingKind::kDeadlock, "deadlock"},
      {FindingKind::kTrap, "device_assert"},
      {FindingKind::kAssertion, "device_assert"},
      {FindingKind::kBadCall, "device_assert"},
      {FindingKind::kStepLimit, "step_limit"},
      {FindingKind::kStackLimit, "device_assert"},
      {FindingKind::kLaunchLimit, "launch_error"},
      {FindingKind::kUnsupported, "unsupported"}};
  for (const auto& [kind, name] : names) EXPECT_EQ(name_of(kind), name);
  EXPECT_FALSE(ends_launch(FindingKind::kShuffleSource));
  EXPECT_TRUE(ends_launch(FindingKind::kOutOfBoundsRead));
}

TEST(PtxTypes, KnowTheirNamesAndBytes) {
  for (int k = 1; k <= static_cast<int>(Type::kF64); ++k) {
    const Type type = static_cast<Type>(k);
    EXPECT_EQ(type_of(name_of(type)), type);
  }
  EXPECT_EQ(type_of("e3m2"), Type::kNone);
  EXPECT_EQ(bytes_of(Type::kF16x2), 4);
  EXPECT_TRUE(is_signed(Type::kS8));
  EXPECT_FALSE(is_integer(Type::kBf16));
}

TEST(PtxLexer, TakesWordsStringsAndSigns) {
  Lexer lexer("ld.global.L2::cache_hint // a comment\n .reg.b32 %r<3>; /* two\nlines */ \"a b\"");
  std::vector<std::string> words;
  std::vector<int> lines;
  for (Token token = lexer.next(); !token.text.empty(); token = lexer.next()) {
    words.emplace_back(token.text);
    lines.push_back(token.line);
  }
  EXPECT_THAT(words, ElementsAre("ld.global.L2::cache_hint", ".reg", ".b32", "%r", "<", "3", ">",
                                 ";", "\"a b\""));
  EXPECT_THAT(lines, ElementsAre(1, 2, 2, 2, 2, 2, 2, 2, 3));
}

}  // namespace
}  // namespace mc::ptx
