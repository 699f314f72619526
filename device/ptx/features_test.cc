// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Features : public Kernels {
 protected:
  void SetUp() override { open(read_testdata("features.ptx")); }

  // Runs one block, or a grid, and expects no findings.
  void run(const char* kernel, uint32_t threads, const Arguments& arguments, uint32_t blocks = 1) {
    const LaunchReport report = launch({.kernel = kernel,
                                        .grid = {blocks, 1, 1},
                                        .block = {threads, 1, 1},
                                        .arguments = arguments});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    printed_ = report.printed;
  }

  LaunchReport run_badly(const char* kernel, uint32_t threads, const Arguments& arguments,
                         int64_t steps_max = 2'000'000) {
    return launch({.kernel = kernel,
                   .block = {threads, 1, 1},
                   .arguments = arguments,
                   .steps_max = steps_max});
  }

  uint64_t zeros(size_t words) { return put(std::vector<int>(words), "out"); }

  std::string printed_;
};

// A kernel whose parameter `out` is in %out.
std::string kernel_with(const std::string& body) {
  return ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
         ".reg .b32 %r<8>; .reg .b64 %l<8>, %out; .reg .f32 %f<4>; .reg .pred %p<4>;\n"
         "ld.param.u64 %out, [out]; mov.u32 %r0, %ctaid.x; mul.wide.u32 %l0, %r0, 8;\n"
         "add.u64 %out, %out, %l0;\n" +
         body + "ret;\n}\n";
}

class PlainText : public Kernels {
 protected:
  // The words that some blocks of one thread stored.
  std::vector<uint64_t> run(const std::string& body, uint64_t seed = 0, uint32_t blocks = 4,
                            int workers = 1) {
    open(kernel_with(body), {.workers = workers});
    const uint64_t out = put(std::vector<uint64_t>(blocks), "out");
    const LaunchReport report = launch(
        {.kernel = "k", .grid = {blocks, 1, 1}, .arguments = Arguments().add(out), .seed = seed});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    return get<uint64_t>(out, blocks);
  }
};

// A block writes the register after the read; the next block must not see that value.
TEST_F(PlainText, UnsetRegistersAreNotZeroAndDependOnTheLaunch) {
  const std::string body = "st.global.u64 [%out], %l1; mov.u64 %l1, 7; st.local.u64 [a], %l1;";
  const std::string local = ".local .align 8 .b8 a[8];\n";
  const std::vector<uint64_t> first = run(local + body);
  EXPECT_NE(first[0], 0);
  EXPECT_THAT(first, testing::Each(first[0]));
  EXPECT_EQ(run(local + body, 0, 4, 2), first);
  std::set<uint64_t> all;
  for (uint64_t seed = 1; seed < 20; ++seed) all.insert(run(local + body, seed)[0]);
  EXPECT_GT(all.size(), 1);
}

// A compiler loads before it knows whether it needs the value.
TEST_F(PlainText, UnwrittenSharedWordsAreReportedIfResultsDependOnThem) {
  const auto findings = [this](const std::string& value) {
    open(
        kernel_with(".shared .align 4 .b8 words[64];\nld.shared.u32 %r1, [words];\n"
                    "setp.eq.u32 %p1, %r0, 99; " +
                    value + " st.global.u32 [%out], %r2;\n"));
    const uint64_t out = put(std::vector<int>(8), "out");
    return launch({.kernel = "k", .grid = {4, 1, 1}, .arguments = Arguments().add(out)}).findings;
  };
  EXPECT_THAT(lines_of(findings("selp.u32 %r2, %r1, 7, %p1;")), IsEmpty());
  EXPECT_THAT(lines_of(findings("max.u32 %r2, %r1, 7;")), SizeIs(1));
  EXPECT_THAT(lines_of(findings("min.s32 %r2, %r1, 7;")), SizeIs(1));
  EXPECT_THAT(lines_of(findings("mov.b32 %f1, %r1; max.f32 %f2, %f1, 0f3F800000; "
                                "mov.b32 %r2, %f2;")),
              SizeIs(1));
  EXPECT_THAT(lines_of(findings("mov.u32 %r2, %r1;")), SizeIs(1));
}

TEST_F(PlainText, MasksOfBitsAreClampedOrWrap) {
  const auto mask = [this](const std::string& mode, uint32_t at, uint32_t bits) {
    return static_cast<uint32_t>(run("mov.u32 %r1, " + std::to_string(at) + "; mov.u32 %r2, " +
                                     std::to_string(bits) + "; bmsk." + mode +
                                     ".b32 %r3, %r1, %r2;\ncvt.u64.u32 %l1, %r3; "
                                     "st.global.u64 [%out], %l1;\n")[0]);
  };
  EXPECT_EQ(mask("clamp", 4, 8), 0xFF0U);
  EXPECT_EQ(mask("clamp", 4, 100), 0xFFFFFFF0U);
  EXPECT_EQ(mask("clamp", 0, 32), 0xFFFFFFFFU);
  EXPECT_EQ(mask("clamp", 40, 3), 0U);
  EXPECT_EQ(mask("clamp", 3, 0), 0U);
  EXPECT_EQ(mask("wrap", 36, 8), 0xFF0U);
  EXPECT_EQ(mask("wrap", 4, 33), 0x10U);
}

TEST_F(PlainText, SumsFromAnUnsetRegisterAreWrong) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto sums =
        run("mov.u32 %r1, 0;\n$L: add.f32 %f1, %f1, 0f3F800000; add.u32 %r1, %r1, 1;\n"
            "setp.lt.u32 %p1, %r1, 3; @%p1 bra $L;\nst.global.f32 [%out], %f1;\n",
            seed);
    EXPECT_FALSE(std::abs(std::bit_cast<float>(static_cast<uint32_t>(sums[0]))) < 1e30F);
  }
}

TEST_F(PlainText, UnsetPredicatesAreNotFalse) {
  open(
      kernel_with("mov.u32 %r1, %tid.x; mul.wide.u32 %l1, %r1, 4; add.u64 %l2, %out, %l1;\n"
                  "selp.u32 %r2, 1, 0, %p1; st.global.u32 [%l2], %r2;\n"));
  const uint64_t out = put(std::vector<int>(32), "out");
  launch({.kernel = "k", .block = {32, 1, 1}, .arguments = Arguments().add(out)});
  EXPECT_THAT(get<int>(out, 32), testing::Contains(1));
}

// The caller sets its register; the callee sets none.
TEST_F(PlainText, UnsetRegistersOfAFunctionAreNotZero) {
  open(std::string(".version 8.0\n.target sm_90\n.address_size 64\n") +
       ".func (.param .b64 r) f() { .reg .b64 %x; st.param.b64 [r], %x; ret; }\n" +
       kernel_with(".param .b64 got; call (got), f, (); ld.param.b64 %l1, [got];\n"
                   "st.global.u64 [%out], %l1;\n")
           .substr(std::string_view(".version 8.0\n.target sm_90\n.address_size 64\n").size()));
  const uint64_t out = put(std::vector<uint64_t>(1), "out");
  launch({.kernel = "k", .arguments = Arguments().add(out)});
  EXPECT_NE(get<uint64_t>(out, 1)[0], 0);
}

TEST_F(PlainText, MultiprocessorsAreThoseOfTheDescription) {
  const auto both = run(
      "mov.u32 %r1, %smid; mov.u32 %r2, %nsmid; st.global.v2.u32 [%out], {%r1, %r2};\n", 0, 134);
  EXPECT_EQ(both[1], uint64_t{132} << 32 | 1);
  EXPECT_EQ(both[133], uint64_t{132} << 32 | 1);
}

TEST_F(PlainText, ClocksAdvanceUnevenlyAndWhileThreadsSleep) {
  const std::string differences =
      "mov.u64 %l1, %clock64; mov.u64 %l2, %clock64; mov.u64 %l3, %clock64;\n"
      "sub.u64 %l4, %l2, %l1; sub.u64 %l5, %l3, %l2; sub.u64 %l6, %l4, %l5;\n"
      "st.global.u64 [%out], %l6;\n";
  EXPECT_NE(run(differences)[0], 0);
  EXPECT_EQ(run(differences, 5), run(differences, 5));
  EXPECT_NE(run(differences, 5), run(differences, 6));
  const uint64_t slept =
      run("mov.u64 %l1, %globaltimer; nanosleep.u32 100000; mov.u64 %l2, %globaltimer;\n"
          "sub.u64 %l3, %l2, %l1; st.global.u64 [%out], %l3;\n")[0];
  EXPECT_GT(slept, 100'000);
  EXPECT_LT(slept, 101'000);
}

// The count of words that a load of the launch's own words reads in error.
class ReadOnlyLoads : public Kernels {
 protected:
  LaunchReport run(const std::string& body, uint32_t threads = 32) {
    open(kernel_with("mov.u32 %r1, %tid.x; mul.wide.u32 %l1, %r1, 4; add.u64 %l2, %out, %l1;\n" +
                     body));
    const uint64_t out = put(std::vector<int>(64, 1), "out");
    return launch({.kernel = "k", .block = {threads, 1, 1}, .arguments = Arguments().add(out)});
  }
};

TEST_F(ReadOnlyLoads, OfWordsThatTheLaunchWroteAreFound) {
  for (const char* load : {"ld.global.nc.u32", "ldu.global.u32"}) {
    const auto report =
        run("st.global.u32 [%l2], %r1; bar.sync 0;\n" + std::string(load) + " %r2, [%l2];\n");
    ASSERT_EQ(report.findings.size(), 1) << load;
    EXPECT_EQ(report.findings[0].kind, FindingKind::kGlobalRace);
    EXPECT_EQ(report.findings[0].instruction, load);
    EXPECT_EQ(report.findings[0].array, "out");
    EXPECT_EQ(report.findings[0].count, 32);
    EXPECT_THAT(report.findings[0].detail, HasSubstr("read-only"));
  }
}

TEST_F(ReadOnlyLoads, OfOtherWordsAreNot) {
  EXPECT_THAT(lines_of(run("ld.global.nc.u32 %r2, [%l2]; st.global.u32 [%l2], %r2;\n").findings),
              IsEmpty());
  EXPECT_THAT(
      lines_of(run("st.global.u32 [%l2], %r1; ld.global.nc.u32 %r2, [%l2+128];\n").findings),
      IsEmpty());
  EXPECT_THAT(lines_of(run("st.global.u32 [%l2], %r1; ld.global.u32 %r2, [%l2];\n").findings),
              IsEmpty());
}

using Division = Kernels;

TEST_F(Division, ByZeroGivesAllBitsAndItsRemainderTheDividend) {
  open(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 out)\n{\n"
      ".reg .b32 %a, %b, %d, %r; .reg .b64 %out;\nld.param.u64 %out, [out];\n"
      "mov.u32 %a, 7; mov.u32 %b, 0; div.s32 %d, %a, %b; rem.u32 %r, %a, %b;\n"
      "st.global.v2.b32 [%out], {%d, %r};\nret;\n}\n");
  const uint64_t out = put(std::vector<int>(2), "out");
  launch({.kernel = "k", .arguments = Arguments().add(out)});
  EXPECT_THAT(get<int>(out, 2), ElementsAre(-1, 7));
}

TEST_F(Features, BlocksOfACooperativeLaunchWaitForEachOther) {
  const uint64_t sum = zeros(1), seen = zeros(5);
  LaunchOptions options{.kernel = "sum_of_grid",
                        .grid = {5, 1, 1},
                        .block = {64, 1, 1},
                        .arguments = Arguments().add(sum).add(seen),
                        .is_cooperative = true};
  for (int k = 0; k < 2; ++k) {  // The barrier is as new for each launch.
    EXPECT_THAT(lines_of(launch(options).findings), IsEmpty());
    const int whole = 15 + 20 * k;
    EXPECT_THAT(get<int>(seen, 5), ElementsAre(whole, whole, whole, whole, whole));
  }
  options.is_cooperative = false;
  EXPECT_THAT(lines_of(launch(options).findings), testing::Not(IsEmpty()));
}

TEST_F(Features, AllBlocksThatFitTheDeviceMeetAtTheGridsBarrier) {
  struct Shape {
    uint32_t blocks, threads;
  };
  for (const auto& [blocks, threads] :
       {Shape{32 * kMultiprocessors, 64}, Shape{2 * kMultiprocessors, 1024}}) {
    const uint64_t sum = zeros(1), seen = zeros(blocks);
    const LaunchReport report = launch({.kernel = "sum_of_grid",
                                        .grid = {blocks, 1, 1},
                                        .block = {threads, 1, 1},
                                        .arguments = Arguments().add(sum).add(seen),
                                        .is_cooperative = true,
                                        .steps_max = 100'000});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    const int whole = static_cast<int>(blocks * (blocks + 1) / 2);
    EXPECT_THAT(get<int>(seen, blocks), testing::Each(whole));
  }
}

using Copies = Kernels;

// The last lane reads the 12 bytes that its array has, and the copy's rest is zeros.
TEST_F(Copies, ReadNoMoreThanTheSizeOfTheirSource) {
  open(
      ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 x, .param .u64 y)\n{\n"
      ".shared .align 16 .b8 s[64]; .reg .b32 %t, %n, %s, %a, %b, %c, %d; .reg .b64 %x, %y, %o;\n"
      "ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %s, s;\n"
      "mad.lo.u32 %s, %t, 16, %s; mul.wide.u32 %o, %t, 16; add.u64 %x, %x, %o;\n"
      "add.u64 %y, %y, %o; shl.b32 %n, %t, 2;\n"
      "cp.async.ca.shared.global [%s], [%x], 16, %n; cp.async.wait_all;\n"
      "ld.shared.v4.b32 {%a, %b, %c, %d}, [%s]; st.global.v4.b32 [%y], {%a, %b, %c, "
      "%d};\nret;\n}\n");
  std::vector<int> values(15);
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<int>(k) + 1;
  const uint64_t x = put(values, "x"), y = put(std::vector<int>(16, -1), "y");
  const LaunchReport report =
      launch({.kernel = "k", .block = {4, 1, 1}, .arguments = Arguments().add(x).add(y)});
  EXPECT_THAT(lines_of(report.findings), IsEmpty());
  EXPECT_THAT(get<int>(y, 16), ElementsAre(0, 0, 0, 0, 5, 0, 0, 0, 9, 10, 0, 0, 13, 14, 15, 0));
}

TEST_F(Features, VariablesHaveTheirInitialValuesAndPointers) {
  const uint64_t out = zeros(4);
  run("variables", 4, Arguments().add(out));
  EXPECT_THAT(get<int>(out, 4), ElementsAre(1 + 3 + 3, 2 + 3 + 5, 3 + 3 + 7, 4 + 3 + 3));
}

TEST_F(Features, LanesCallDifferentFunctionsByPointers) {
  const uint64_t which = put(std::vector<int>{0, 1, 1, 0}, "which"), out = zeros(4);
  run("pointers", 4, Arguments().add(which).add(out));
  EXPECT_THAT(get<float>(out, 4), ElementsAre(0, 2, 3, 6));
}

TEST_F(Features, IndirectCallOfNoFunctionIsFound) {
  // A table of pointers is beyond its end at index 2.
  const uint64_t which = put(std::vector<int>{2}, "which"), out = zeros(1);
  const LaunchReport report = run_badly("pointers", 1, Arguments().add(which).add(out));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kOutOfBoundsRead);
}

TEST_F(Features, RecursionOfEachLaneGoesItsOwnDepth) {
  const uint64_t out = zeros(64);
  run("recursion", 64, Arguments().add(out));
  const int expected[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  const std::vector<int> results = get<int>(out, 64);
  for (int k = 0; k < 64; ++k) EXPECT_EQ(results[k], expected[k % 12]) << k;
}

TEST_F(Features, RecursionWithoutEndIsEnded) {
  const LaunchReport report = run_badly("recursion_without_end", 32, Arguments().add(zeros(1)));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kStackLimit);
  EXPECT_FALSE(report.is_complete);
}

TEST_F(Features, LoopWithoutEndIsEndedWithItsLine) {
  const LaunchReport report =
      run_badly("loop_without_end", 32, Arguments().add(zeros(1)), /*steps_max=*/1000);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kStepLimit);
  EXPECT_EQ(report.findings[0].kernel, "loop_without_end");
  EXPECT_GT(report.findings[0].line, 0);
}

TEST_F(Features, PrintsFormattedText) {
  run("prints", 32, Arguments().add(7));
  EXPECT_EQ(printed_, "7  1.50 text x ff %\n");
}

TEST_F(Features, FailedAssertionHasItsText) {
  const uint64_t x = put(std::vector<int>{0, 0, 1}, "x");
  const LaunchReport report = run_badly("asserts", 3, Arguments().add(x));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kAssertion);
  EXPECT_THAT(report.findings[0].detail, HasSubstr("x[threadIdx.x] == 0"));
  EXPECT_EQ(report.findings[0].thread->thread[0], 2U);
}

TEST_F(Features, HeapGivesEachThreadItsOwnBytes) {
  const uint64_t out = zeros(40);
  run("heap", 40, Arguments().add(out));
  const std::vector<int> results = get<int>(out, 40);
  for (int k = 0; k < 40; ++k) EXPECT_EQ(results[k], 2 * k + 3);
}

TEST_F(Features, LocalArraysAreOfEachThread) {
  std::vector<int> index(64);
  for (int k = 0; k < 64; ++k) index[k] = k * 7;
  const uint64_t out = zeros(64);
  run("local_array", 64, Arguments().add(put(index, "index")).add(out));
  const std::vector<int> results = get<int>(out, 64);
  for (int k = 0; k < 64; ++k) EXPECT_EQ(results[k], (index[k] & 15) * k);
}

TEST_F(Features, SwitchesGoToTheirCases) {
  const uint64_t x = put(std::vector<int>{0, 1, 2, 3, 4, 5, 6}, "x"), out = zeros(7);
  run("switches", 7, Arguments().add(x).add(out));
  EXPECT_THAT(get<int>(out, 7), ElementsAre(7, 1, 4, -3, 104, 40, -1));
}

TEST_F(Features, SpinLockWithinAWarpLetsEachLaneIn) {
  const uint64_t lock = zeros(1), count = zeros(1);
  run("spin_lock", 64, Arguments().add(lock).add(count), 2);
  EXPECT_THAT(get<int>(count, 1), ElementsAre(128));
}

TEST_F(Features, BlocksThatWaitForOthersAllRun) {
  constexpr uint32_t kBlocks = 40;
  const uint64_t arrived = zeros(1), out = zeros(kBlocks);
  run("grid_barrier", 32, Arguments().add(arrived).add(out), kBlocks);
  EXPECT_THAT(get<int>(out, kBlocks), testing::Each(static_cast<int>(kBlocks)));
}

TEST_F(Features, PartsOfAWarpSynchroniseAtTheirOwnInstruction) {
  const uint64_t y = zeros(32);
  run("partial_meetings", 32, Arguments().add(y));
  const std::vector<float> results = get<float>(y, 32);
  for (int k = 0; k < 32; ++k) {
    const float met = k < 16 ? k + (k ^ 1) : k - (k ^ 1);
    EXPECT_EQ(results[k], k & 1 ? met : 2 * met) << k;
  }
}

TEST_F(Features, VotesAndReductionsSeeAllLanes) {
  std::vector<int> x(64);
  for (int k = 0; k < 64; ++k) x[k] = k % 7;
  const uint64_t out = zeros(64);
  run("votes", 64, Arguments().add(put(x, "x")).add(out));
  const std::vector<uint32_t> results = get<uint32_t>(out, 64);
  uint32_t odd = 0;
  for (const int v : x) odd += v & 1;
  for (int k = 0; k < 64; ++k) {
    uint32_t ballot = 0, match = 0, sum = 0;
    for (int l = 0; l < 32; ++l) {
      const int v = x[k / 32 * 32 + l];
      ballot |= uint32_t{v > 3} << l;
      match |= uint32_t{v == x[k]} << l;
      sum += v;
    }
    EXPECT_EQ(results[k], ballot + match + sum + odd + 1000 + 5000) << k;
  }
}

TEST_F(Features, NamedBarrierWaitsForItsOwnThreads) {
  const uint64_t out = zeros(128);
  run("named_barriers", 128, Arguments().add(out));
  const std::vector<int> results = get<int>(out, 128);
  for (int k = 0; k < 128; ++k) EXPECT_EQ(results[k], k < 64 ? 63 - k : k);
}

TEST_F(Features, AtomicsOfAllBlocksAddUp) {
  const uint64_t x = zeros(4), f = zeros(1), wrapped = zeros(1);
  const uint64_t wide = put(std::vector<uint64_t>(1), "wide");
  run("atomics", 64, Arguments().add(x).add(f).add(wrapped).add(wide), 3);
  EXPECT_THAT(get<int>(x, 3), ElementsAre(3 * 2016, 63, -63));
  EXPECT_THAT(get<float>(f, 1), ElementsAre(96.0F));
  EXPECT_THAT(get<int>(wrapped, 1), ElementsAre(192 % 10));
  EXPECT_THAT(get<uint64_t>(wide, 1), ElementsAre(uint64_t{192} << 33));
}

TEST_F(Features, AsynchronousCopiesTakeEffectAtTheWait) {
  const std::vector<float> x = random(128, 1);
  const uint64_t y = zeros(128);
  run("copies", 32, Arguments().add(put(x, "x")).add(y));
  const std::vector<float> results = get<float>(y, 128);
  for (int k = 0; k < 128; ++k) EXPECT_EQ(results[k], x[127 - k]);
}

TEST_F(Features, CopyWithoutAWaitIsUnwritten) {
  const uint64_t x = zeros(32), y = zeros(32);
  const LaunchReport report = run_badly("copies_without_wait", 32, Arguments().add(x).add(y));
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].kind, FindingKind::kUnwrittenShared);
}

uint16_t half_bits(int small) {
  // Small integers have exact halves.
  const float f = static_cast<float>(small);
  const uint32_t bits = std::bit_cast<uint32_t>(f);
  if (small == 0) return 0;
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | ((bits & 0x7FFFFFFF) - (112U << 23)) >> 13);
}

TEST_F(Features, FragmentsOfHalvesMultiply) {
  std::vector<uint16_t> a(256), b(256);
  for (int k = 0; k < 256; ++k) a[k] = half_bits(k % 7 - 3), b[k] = half_bits(k % 5 - 2);
  const uint64_t c = zeros(256);
  run("wmma_half", 32, Arguments().add(put(a, "a")).add(put(b, "b")).add(c));
  const std::vector<float> results = get<float>(c, 256);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int sum = 1;
      for (int k = 0; k < 16; ++k) sum += ((i * 16 + k) % 7 - 3) * ((j * 16 + k) % 5 - 2);
      EXPECT_EQ(results[i * 16 + j], 2 * sum);
    }
  }
}

TEST_F(Features, FragmentsOfBytesMultiply) {
  std::vector<int8_t> a(256), b(256);
  for (int k = 0; k < 256; ++k) {
    a[k] = static_cast<int8_t>(k);
    b[k] = static_cast<int8_t>(3 * k);
  }
  const uint64_t c = zeros(256);
  run("wmma_bytes", 32, Arguments().add(put(a, "a")).add(put(b, "b")).add(c));
  const std::vector<int> results = get<int>(c, 256);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      int sum = 0;
      for (int k = 0; k < 16; ++k) sum += a[i * 16 + k] * b[k * 16 + j];
      EXPECT_EQ(results[j * 16 + i], sum);
    }
  }
}

TEST_F(Features, HalvesComputeAsFloatsRoundedOnce) {
  std::vector<uint16_t> a(32), b(32);
  for (int k = 0; k < 32; ++k) {
    a[k] = half_bits(k - 16);
    b[k] = static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(k - 16)) >> 16);
  }
  const uint64_t c = zeros(32), d = zeros(32);
  run("halves", 32, Arguments().add(put(a, "a")).add(put(b, "b")).add(c).add(d));
  const std::vector<uint32_t> pairs = get<uint32_t>(c, 32);
  const std::vector<float> results = get<float>(d, 32);
  for (int k = 0; k < 32; ++k) {
    const uint32_t negative = k == 16 ? 0x8000 : half_bits(4 * (16 - k));
    EXPECT_EQ(pairs[k], negative << 16 | half_bits(4 * (k - 16))) << k;
    EXPECT_NEAR(results[k], k - 15 + std::exp2(k - 16), 0.001 * std::exp2(k - 16) + 1e-6) << k;
  }
}

TEST_F(Features, WideIntegersAndBitsAreExact) {
  std::vector<uint32_t> a(64), b(64);
  std::mt19937 generator(5);
  for (int k = 0; k < 64; ++k) a[k] = generator(), b[k] = generator();
  const uint64_t out = zeros(64);
  run("wide", 64, Arguments().add(put(a, "a")).add(put(b, "b")).add(out));
  const std::vector<uint32_t> results = get<uint32_t>(out, 64);
  for (int k = 0; k < 64; ++k) {
    const uint64_t x = uint64_t{a[k]} << 20 | b[k];
    __extension__ using Wide = unsigned __int128;
    const uint32_t product = static_cast<uint32_t>(Wide{x} * (x + 7) >> 40);
    auto byte = [&](int n) {
      return static_cast<uint32_t>((uint64_t{b[k]} << 32 | a[k]) >> 8 * n) & 255;
    };
    const uint32_t permuted = byte(2) | byte(7) << 8 | byte(1) << 16 | byte(6) << 24;
    const uint32_t funnel = static_cast<uint32_t>((uint64_t{b[k]} << 32 | a[k]) >> 5);
    uint32_t reversed = 0;
    for (int n = 0; n < 32; ++n) reversed |= (a[k] >> n & 1) << (31 - n);
    int dot = 3;
    for (int n = 0; n < 4; ++n) {
      dot += static_cast<int8_t>(a[k] >> 8 * n) * static_cast<int8_t>(b[k] >> 8 * n);
    }
    const uint32_t expected =
        product ^ permuted ^ funnel ^ reversed ^ static_cast<uint32_t>(std::popcount(b[k])) ^
        static_cast<uint32_t>(std::countl_zero(a[k])) ^ static_cast<uint32_t>(dot) ^
        static_cast<uint32_t>(x == 0 ? 0 : std::countr_zero(x) + 1);
    EXPECT_EQ(results[k], expected) << k;
  }
}

TEST_F(Features, TimeGoesOn) {
  const uint64_t out = put(std::vector<int64_t>(32), "out");
  run("wait_for_time", 32, Arguments().add(out));
  EXPECT_THAT(get<int64_t>(out, 32), testing::Each(1));
}

// ---- Blocks that synchronise through words of global memory have no races.
TEST_F(Features, LastBlockReadsFencedWritesOfAllBlocks) {
  const uint64_t sum = put(std::vector<float>(1), "sum");
  run("last_block", 64, Arguments().add(zeros(64 * 9)).add(zeros(1)).add(sum), 9);
  EXPECT_EQ(get<float>(sum, 1)[0], 9 * 63 * 32);
}

TEST_F(Features, AtomicSumsArePublishedByTheLastBlock) {
  const uint64_t out = put(std::vector<float>(64), "out");
  const uint64_t x = put(std::vector<float>(64 * 7, 1.5F), "x");
  run("split_k", 64, Arguments().add(x).add(zeros(64)).add(zeros(1)).add(out), 7);
  EXPECT_THAT(get<float>(out, 64), testing::Each(21));
}

TEST_F(Features, BarriersOfAGridOrderReadsAndWrites) {
  for (const uint64_t seed : {0, 1, 2}) {
    const uint64_t x = zeros(32 * 6);
    const LaunchReport report =
        launch({.kernel = "phases",
                .grid = {6, 1, 1},
                .block = {32, 1, 1},
                .arguments = Arguments().add(zeros(1)).add(x).add(zeros(32 * 6)),
                .seed = seed});
    EXPECT_THAT(lines_of(report.findings), IsEmpty());
    EXPECT_EQ(get<int>(x, 1)[0], 96);
    EXPECT_EQ(get<int>(x, 192)[191], 95);
  }
}

TEST_F(Features, BlocksWaitForTheOneBefore) {
  const uint64_t out = zeros(20);
  const uint64_t x = put(std::vector<int>(20, 3), "x");
  run("chained_scan", 1, Arguments().add(x).add(zeros(20)).add(zeros(20)).add(out), 20);
  EXPECT_EQ(get<int>(out, 20)[19], 57);
}

TEST_F(Features, LockOrdersPlainAccesses) {
  const uint64_t count = zeros(1);
  run("guarded_count", 64, Arguments().add(zeros(1)).add(count), 3);
  EXPECT_EQ(get<int>(count, 1)[0], 192);
}

TEST_F(Features, SeedPermutesTheTurnsOfBlocksAndWarps) {
  std::vector<std::vector<int>> orders;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{7}, uint64_t{7}, uint64_t{8}}) {
    const uint64_t out = zeros(8 * 4);
    launch({.kernel = "turns",
            .grid = {8, 1, 1},
            .block = {128, 1, 1},
            .arguments = Arguments().add(zeros(1)).add(out),
            .seed = seed});
    orders.push_back(get<int>(out, 8 * 4));
  }
  for (const std::vector<int>& order : orders) {
    std::vector<int> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, orders[0]);
  }
  EXPECT_NE(orders[1], orders[0]);
  EXPECT_EQ(orders[2], orders[1]);
  EXPECT_NE(orders[3], orders[1]);
}

}  // namespace
}  // namespace mc::ptx
