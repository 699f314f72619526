// SPDX-License-Identifier: Apache-2.0
//
// Apparent races that a second run dismisses: Triton lets several threads load the same value.
#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// All threads of two warps load a word, and the first one stores its successor; then `rest`, where
// %r1 is the value that the thread loaded, %r3 the thread and %rd1 the word's address.
std::string module_of(const std::string& file, const std::string& rest) {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry step(.param .u64 x) {
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  .loc 1 1 1
  ld.param.u64 %rd1, [x];
  mov.u32 %r3, %tid.x;
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r3, 0;
  @%p1 st.global.u32 [%rd1], %r2;
)" + rest +
         R"(
  ret;
}
.file 1 ")" +
         file + "\"\n";
}

// Each thread stores its loaded value behind the word.
constexpr const char* kStoresAll = R"(
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3+4], %r1;
)";

class Settle : public Kernels {
 protected:
  LaunchReport run(const std::string& text, uint32_t blocks = 1, uint64_t seed = 0) {
    open(text);
    word_ = put(std::vector<int>(65, 7), "x");
    return launch({.kernel = "step",
                   .grid = {blocks, 1, 1},
                   .block = {64, 1, 1},
                   .arguments = Arguments().add(word_),
                   .seed = seed});
  }
  uint64_t word_ = 0;
};

TEST_F(Settle, AnUnusedLateCopyIsNoRace) {
  for (const uint64_t seed : {0, 1, 2, 3}) {
    EXPECT_THAT(lines_of(run(module_of("k.py", ""), 1, seed).findings), IsEmpty());
    EXPECT_EQ(get<int>(word_, 1)[0], 8);
  }
}

TEST_F(Settle, ALateCopyThatReachesMemoryIsARace) {
  EXPECT_THAT(lines_of(run(module_of("k.py", kStoresAll)).findings),
              ElementsAre(HasSubstr("what another thread of its block wrote")));
}

TEST_F(Settle, BlocksRaceWhateverTheBytesAre) {
  EXPECT_FALSE(run(module_of("k.py", ""), 2).findings.empty());
}

TEST_F(Settle, ThreadsOfCudaHaveNoCopies) {
  EXPECT_THAT(lines_of(run(module_of("k.cu", "")).findings),
              ElementsAre(HasSubstr("what another thread of its block wrote")));
}

}  // namespace
}  // namespace mc::ptx
