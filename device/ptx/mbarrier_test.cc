// SPDX-License-Identifier: Apache-2.0
#include "ptx/mbarrier.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

// Each of 64 threads writes its number for the others, twice, and adds what the next one wrote.
// WAIT and AGAIN are the ways to wait for the first and for the second phase, EXPECTED the number
// of arrivals.
constexpr const char* kExchange = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry exchange(.param .u64 to) {
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .reg .b64 %d<6>;
  .shared .align 8 .b64 bar;
  .shared .align 4 .b8 part[256];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r2, bar;
  mov.u32 %r9, EXPECTED;
  @!%p1 mbarrier.init.shared.b64 [%r2], %r9;
  bar.sync 0;
  shl.b32 %r3, %r1, 2;
  mov.u32 %r4, part;
  add.u32 %r4, %r4, %r3;
  st.shared.u32 [%r4], %r1;
  mbarrier.arrive.release.cta.shared::cta.b64 %d1, [%r2];
FIRST:
  WAIT
  add.u32 %r5, %r1, 1;
  and.b32 %r5, %r5, 63;
  shl.b32 %r5, %r5, 2;
  mov.u32 %r6, part;
  add.u32 %r6, %r6, %r5;
  ld.shared.u32 %r7, [%r6];
  mbarrier.arrive.shared.b64 %d1, [%r2], 1;
SECOND:
  AGAIN
  st.shared.u32 [%r4], %r7;
  mbarrier.arrive.shared.b64 %d1, [%r2];
THIRD:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra THIRD;
  ld.shared.u32 %r8, [%r6];
  add.u32 %r7, %r7, %r8;
  ld.param.u64 %d3, [to];
  mul.wide.u32 %d4, %r1, 4;
  add.u64 %d3, %d3, %d4;
  st.global.u32 [%d3], %r7;
  ret;
}
)";

class Mbarrier : public Kernels {
 protected:
  LaunchReport exchange(const std::string& first, const std::string& second,
                        const std::string& expected = "%ntid.x") {
    std::string text = kExchange;
    text.replace(text.find("EXPECTED"), 8, expected);
    text.replace(text.find("WAIT"), 4, first);
    text.replace(text.find("AGAIN"), 5, second);
    open(text);
    to_ = put(std::vector<uint32_t>(64), "to");
    Arguments arguments;
    arguments.add(to_);
    return launch(
        {.kernel = "exchange", .block = {64, 1, 1}, .arguments = arguments, .steps_max = 100});
  }

  uint64_t to_ = 0;
};

constexpr const char* kByState = "mbarrier.test_wait.shared.b64 %p2, [%r2], %d1; @!%p2 bra FIRST;";
constexpr const char* kByParity =
    "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [%r2], 1, 100; @!%p2 bra SECOND;";

TEST_F(Mbarrier, APhaseEndsWhenAllArrived) {
  EXPECT_THAT(lines_of(exchange(kByState, kByParity).findings), IsEmpty());
  std::vector<uint32_t> expected(64);
  for (uint32_t i = 0; i < 64; ++i) expected[i] = (i + 1) % 64 + (i + 2) % 64;
  EXPECT_EQ(get<uint32_t>(to_, 64), expected);
}

TEST_F(Mbarrier, AReadWithoutAWaitRaces) {
  EXPECT_THAT(lines_of(exchange("", kByParity).findings), Contains(HasSubstr("shared_race")));
}

TEST_F(Mbarrier, AnArrivalThatIsMissingIsWaitedForWithoutEnd) {
  EXPECT_THAT(lines_of(exchange(kByState, kByParity, "65").findings),
              Contains(HasSubstr("step_limit")));
}

TEST(MbarrierText, KeepsLinesAndWhatItDoesNotKnow) {
  for (const char* same :
       {"", "mbarrier", "// mbarrier.inval.shared.b64 [%r1];\n",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1;", "mbarrier.init.shared.b64;",
        "mbarrier.arrive_drop.shared.b64 _, [%r1];", "mbarrier.inval\n.shared.b64 [%r1];",
        "mbarrier.test_wait.shared::cluster.b64 %p1, [%r1], %d1;"}) {
    EXPECT_EQ(without_mbarriers(same), same);
  }
  const std::string text =
      without_mbarriers("a;\n@%p1 cp.async.mbarrier.arrive.noinc.b64 [%d1];\nb");
  EXPECT_THAT(text, HasSubstr("@%p1 cp.async.wait_all;"));
  EXPECT_THAT(text, HasSubstr("@%p1 atom.release.cta.add.u64 _,  [%d1], %mc_word;"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

}  // namespace
}  // namespace mc::ptx
