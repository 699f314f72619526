// SPDX-License-Identifier: Apache-2.0
//
// Hostile kernels and modules: each is ended by its budget or refused, with kernel and line, and
// stays within its limits of time and memory.
#include <gmock/gmock.h>

#include <sys/resource.h>

#include <chrono>

#include "ptx/module.h"
#include "ptx/testing/test_device.h"

namespace mc::ptx::hostile {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr const char* kHead =
    ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"made.cu\"\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n";

constexpr const char* kRegisters =
    ".loc 1 7 1\n.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 "
    "%f<9>;\n"
    ".param .b64 a0; .param .b64 a1; .param .b32 out; .param .b64 out8;\n"
    "ld.param.u64 %l1, [p]; mov.u32 %r1, %tid.x;\n";

std::string kernel(const std::string& body, const std::string& declarations = "") {
  return kHead + declarations + ".visible .entry k(.param .u64 p)\n{\n" + kRegisters + body +
         "\nret;\n}\n";
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int k = 0; k < count; ++k) all += text;
  return all;
}

class HostileKernels : public Kernels {
 protected:
  // The report of a launch with an array of 1024 bytes as the parameter.
  LaunchReport run(const std::string& text, LaunchOptions options) {
    open(text);
    const uint64_t x = put(std::vector<int>(256), "x");
    options.kernel = "k";
    options.arguments.add(x);
    return launch(options);
  }

  LaunchReport run(const std::string& text, uint32_t threads = 32, int64_t steps_max = 100) {
    return run(text, {.block = {threads, 1, 1}, .steps_max = steps_max});
  }

  void expect_end(const LaunchReport& report, FindingKind kind, const std::string& text) {
    EXPECT_FALSE(report.is_complete);
    ASSERT_THAT(report.findings, SizeIs(testing::Ge(1U)));
    const Finding& last = report.findings.back();
    EXPECT_EQ(last.kind, kind) << describe(last);
    EXPECT_THAT(describe(last), HasSubstr("kernel k, made.cu:7"));
    EXPECT_THAT(describe(last), HasSubstr(text));
  }

  void expect_refusal(const std::string& text, const std::string& message) {
    const Result<std::unique_ptr<Device>> device = Device::create({.memory_bytes = 64 << 20});
    const Result<ModuleId> module = (*device)->load(text);
    if (!module) {
      EXPECT_THAT(module.error().message, HasSubstr(message));
      EXPECT_LT(module.error().message.size(), 2000U);
      return;
    }
    const Result<KernelFacts> facts = (*device)->decode(*module, "k");
    ASSERT_FALSE(facts) << message;
    EXPECT_THAT(facts.error().message, HasSubstr(message));
    EXPECT_LT(facts.error().message.size(), 2000U);
  }
};

// ---- Time.
TEST_F(HostileKernels, ThatLoopForEverAreEndedByTheirBudget) {
  expect_end(run(kernel("$L: bra $L;")), FindingKind::kStepLimit, "bra: the launch ran for longer");
  expect_end(run(kernel("$L: setp.eq.u32 %p1, %r1, 3; @%p1 bra $L; bra $L;")),
             FindingKind::kStepLimit, "bra");
  expect_end(run(kernel("ts: .branchtargets $L;\n$L: mov.u32 %r2, 0; brx.idx %r2, ts;")),
             FindingKind::kStepLimit, "brx.idx");
}

// Without a price for the loop's length this would take minutes.
TEST_F(HostileKernels, PayForTheLengthOfTheirLoops) {
  const std::string body = "$L:\n" + repeated("add.u32 %r2, %r2, %r1;\n", 40000) + "bra $L;";
  expect_end(run(kernel(body), 32, 1000), FindingKind::kStepLimit, "bra");
}

TEST_F(HostileKernels, PayForTheirBlocks) {
  LaunchOptions many{.grid = {0x7FFFFFFF, 1, 1}, .block = {1, 1, 1}, .steps_max = 1000};
  expect_end(run(kernel("add.u32 %r2, %r2, %r1;"), many), FindingKind::kStepLimit, "budget");
  const std::string body = repeated("add.u32 %r2, %r2, %r1;\n", 40000);
  expect_end(run(kernel(body), many), FindingKind::kStepLimit, "budget");
}

// A tree of 2^40 calls.
TEST_F(HostileKernels, PayForTheirCalls) {
  std::string functions = ".func f0() { ret; }\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string callee = "f" + std::to_string(k - 1);
    functions += ".func f" + std::to_string(k) + "() {\n.loc 1 7 1\ncall " + callee + ";\ncall " +
                 callee + ";\nret; }\n";
  }
  expect_end(run(kernel("call f40;", functions)), FindingKind::kStepLimit, "call");
}

TEST_F(HostileKernels, ThatRecurseForEverAreEnded) {
  const std::string function = ".func f() {\n.loc 1 7 1\ncall f;\nret; }\n";
  expect_end(run(kernel("call f;", function)), FindingKind::kStackLimit, "nested too deeply");
}

// ---- Printing and memory.
std::string printing(const std::string& format) {
  std::string bytes;
  for (const char c : format) bytes += std::to_string(int{c}) + ",";
  return ".global .align 8 .b8 text[64] = {" + bytes + "0};\n.global .align 8 .b8 values[64];\n";
}

constexpr const char* kPrint =
    "mov.u64 %l2, text; mov.u64 %l3, values;\n"
    "st.param.b64 [a0], %l2; st.param.b64 [a1], %l3;\ncall (out), vprintf, (a0, a1);\n";

TEST_F(HostileKernels, ThatPrintForEverAreEnded) {
  const std::string body = "$L:\n" + std::string(kPrint) + "bra $L;";
  const LaunchReport report = run(kernel(body, printing("some text %d\n")), 256, 1000);
  EXPECT_FALSE(report.is_complete);
  EXPECT_EQ(report.findings.at(0).kind, FindingKind::kStepLimit);
  EXPECT_LE(report.printed.size(), size_t{1} << 20);
}

// A field of 10^9 characters would take the host a second each time.
TEST_F(HostileKernels, PrintFieldsOfLimitedWidth) {
  for (const char* format :
       {"%999999999d", "%.999999999f", "%999999999.999999999e", "%0999999999x"}) {
    const std::string body = "mov.u32 %r2, 0;\n$L:\n" + std::string(kPrint) +
                             "add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 50; @%p1 bra $L;";
    const LaunchReport report = run(kernel(body, printing(format)));
    EXPECT_TRUE(report.is_complete);
    EXPECT_LE(report.printed.size(), size_t{1} << 20);
  }
}

TEST_F(HostileKernels, ThatPrintFromWildPointersAreEnded) {
  const std::string wild =
      "mov.u64 %l2, -8; st.param.b64 [a0], %l2; st.param.b64 [a1], %l2;\n"
      "call (out), vprintf, (a0, a1);";
  expect_end(run(kernel(wild)), FindingKind::kOutOfBoundsRead, "call");
}

TEST_F(HostileKernels, GetNullWhereTheHeapIsUsedUp) {
  const std::string body =
      "$L: mov.u64 %l2, 1048576; st.param.b64 [a0], %l2; call (out8), malloc, (a0);\n"
      "ld.param.b64 %l3, [out8]; setp.ne.u64 %p1, %l3, 0; @%p1 bra $L;";
  EXPECT_TRUE(run(kernel(body)).is_complete);
  const std::string huge =
      "mov.u64 %l2, -1; st.param.b64 [a0], %l2; call (out8), malloc, (a0);\n"
      "ld.param.b64 %l3, [out8]; setp.ne.u64 %p1, %l3, 0; @%p1 trap;";
  EXPECT_TRUE(run(kernel(huge)).is_complete);
}

TEST_F(HostileKernels, ThatFreeWildPointersAreEnded) {
  const std::string body = "add.u64 %l2, %l1, 8; st.param.b64 [a0], %l2; call free, (a0);";
  expect_end(run(kernel(body)), FindingKind::kBadCall, "free of an address");
}

// ---- Meetings.
TEST_F(HostileKernels, WhoseThreadsWaitForOneAnotherAreDeadlocked) {
  expect_end(run(kernel("bar.sync 1, 64;")), FindingKind::kDeadlock, "barrier");
  expect_end(run(kernel("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1;\nbar.sync 2;"), 64),
             FindingKind::kDeadlock, "barrier");
  expect_end(run(kernel("setp.lt.u32 %p1, %r1, 9; @!%p1 bar.warp.sync 0xffffffff;\nbar.sync 2;")),
             FindingKind::kDeadlock, "bar.warp.sync");
}

TEST_F(HostileKernels, WhoseThreadsSpinAtABarrierAreEnded) {
  const std::string body = "setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 0;\n$L: @!%p1 bra $L;";
  expect_end(run(kernel(body), 64), FindingKind::kStepLimit, "bra");
}

// ---- Places.
TEST_F(HostileKernels, WithAnIndexBeyondTheTargetsAreEnded) {
  for (const char* index : {"4294967295", "2"}) {
    const std::string body = "ts: .branchtargets $A, $B;\nmov.u32 %r2, " + std::string(index) +
                             "; brx.idx %r2, ts;\n$A: bra $B;\n$B: mov.u32 %r3, 1;";
    expect_end(run(kernel(body)), FindingKind::kTrap, "beyond its targets");
  }
}

TEST_F(HostileKernels, ThatCallWildPointersAreEnded) {
  for (const char* target : {"0", "-1", "0x7f0000000000"}) {
    const std::string body = "proto: .callprototype _ ();\nmov.u64 %l2, " + std::string(target) +
                             "; call %l2, (), proto;";
    expect_end(run(kernel(body)), FindingKind::kBadCall, "no function's");
  }
}

TEST_F(HostileKernels, ThatCallTheirOwnKernelAreEnded) {
  const std::string body = "proto: .callprototype _ ();\nmov.u64 %l2, k; call %l2, (), proto;";
  expect_end(run(kernel(body)), FindingKind::kBadCall, "no function's");
}

struct WildAccess {
  const char* body;
  FindingKind kind;
};

TEST_F(HostileKernels, ThatLeaveTheirMemoryAreEnded) {
  constexpr FindingKind kRead = FindingKind::kOutOfBoundsRead;
  constexpr FindingKind kWrite = FindingKind::kOutOfBoundsWrite;
  const WildAccess cases[] = {
      {"ld.global.u32 %r2, [%l1+-4];", kRead},
      {"st.global.u32 [%l1+1024], %r2;", kWrite},
      {"st.global.u32 [%l1+1099511627776], %r2;", kWrite},
      {"mov.u64 %l2, -4; st.global.u32 [%l2], %r2;", kWrite},
      {"mov.u64 %l2, -8; st.global.u32 [%l2+8], %r2;", kWrite},
      {"st.global.v4.u32 [%l1+1012], {%r1, %r1, %r1, %r1};", FindingKind::kMisaligned},
      {"mov.u32 %r2, -4; st.shared.u32 [%r2], %r1;", kWrite},
      {"mov.u32 %r2, 0; ld.shared.u32 %r1, [%r2+4096];", kRead},
      {"mov.u64 %l2, 64; st.local.u32 [%l2], %r1;", kWrite},
      {"mov.u64 %l2, -4; ld.local.u32 %r1, [%l2];", kRead},
      {"mov.u64 %l2, p; st.u32 [%l2], %r1;", kWrite},
      {"mov.u64 %l2, p; ld.u32 %r1, [%l2+8];", kRead},
      {"atom.global.add.u32 %r2, [%l1+-4], 1;", kWrite},
      {"red.global.add.u32 [%l1+1024], 1;", kWrite},
      {"mov.u32 %r2, -8; atom.shared.add.u32 %r2, [%r2], 1;", kWrite},
      {"mov.u64 %l2, -4; atom.add.u32 %r2, [%l2], 1;", kWrite},
  };
  for (const WildAccess& one : cases) {
    SCOPED_TRACE(one.body);
    expect_end(run(kernel(one.body)), one.kind, "an access");
  }
}

// In the second iteration the row of addresses ends behind 2^64; the first is in bounds.
TEST_F(HostileKernels, WhoseRowsOfAddressesWrapAroundAreEnded) {
  for (const char* start : {"-128", "-64", "0x7fffffffff00"}) {
    const std::string body =
        "mul.wide.u32 %l3, %r1, 4; add.u64 %l4, %l1, %l3; mov.u32 %r2, 0;\n"
        "$L: st.global.u32 [%l4], %r1;\nmov.u64 %l4, " +
        std::string(start) +
        "; add.u64 %l4, %l4, %l3; add.u32 %r2, %r2, 1;\n"
        "setp.lt.u32 %p1, %r2, 2; @%p1 bra $L;";
    expect_end(run(kernel(body)), FindingKind::kOutOfBoundsWrite, "outside of all allocations");
  }
}

TEST_F(HostileKernels, WithoutTheirArgumentsDoNotStart) {
  open(kernel(""));
  const LaunchReport report = launch({.kernel = "k"});
  EXPECT_EQ(report.findings.at(0).kind, FindingKind::kLaunchLimit);
}

// Two functions may have shared variables with the same name.
TEST_F(HostileKernels, HaveSharedVariablesOfTheirOwn) {
  const std::string function =
      ".func f() {\n.shared .align 4 .b32 s;\nst.shared.b32 [s], 2;\nret; }\n";
  const std::string body =
      ".shared .align 4 .b32 s;\nst.shared.b32 [s], 1;\ncall f;\n"
      "ld.shared.b32 %r2, [s]; st.global.b32 [%l1], %r2;";
  open(kernel(body, function));
  const uint64_t x = put(std::vector<int>(1), "x");
  EXPECT_TRUE(launch({.kernel = "k", .arguments = Arguments().add(x)}).findings.empty());
  EXPECT_EQ(get<int>(x, 1)[0], 1);
}

// ---- Memory of the host.
size_t memory_peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) >> 10;
}

TEST_F(HostileKernels, HaveLimitedCopiesUnderWay) {
  const std::string body =
      ".shared .align 16 .b8 s[65536];\nmov.u32 %r2, s; mov.u32 %r3, 0;\n"
      "$L: cp.async.cg.shared.global [%r2], [%l1], 16;\n"
      "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 300; @%p1 bra $L;\n$M: bra $M;";
  const size_t before = memory_peak_mib();
  const LaunchReport report =
      run(kernel(body), {.grid = {4000, 1, 1}, .block = {1024, 1, 1}, .steps_max = 10'000});
  EXPECT_FALSE(report.is_complete);
  EXPECT_LT(memory_peak_mib(), before + 1536);
}

TEST_F(HostileKernels, HaveLimitedFramesOfCalls) {
  const std::string function =
      ".func f(.param .b32 n) {\n.reg .b32 %r<9>; .reg .pred %p<9>; .param .b32 m;\n"
      ".param .align 4 .b8 big[4096];\nld.param.u32 %r1, [n];\n"
      "setp.eq.u32 %p1, %r1, 0; $M: @%p1 bra $M;\nsub.u32 %r1, %r1, 1;\n"
      "st.param.b8 [big+4], 1;\nst.param.b32 [m], %r1;\n.loc 1 7 1\ncall f, (m);\nret; }\n";
  const std::string body = ".param .b32 m; st.param.b32 [m], 900; call f, (m);";
  const size_t before = memory_peak_mib();
  const LaunchReport report =
      run(kernel(body, function), {.grid = {64, 1, 1}, .block = {64, 1, 1}, .steps_max = 10'000});
  EXPECT_FALSE(report.is_complete);
  EXPECT_LT(memory_peak_mib(), before + 1536);
}

TEST_F(HostileKernels, HaveLimitedLocalMemory) {
  const std::string body =
      ".local .align 16 .b8 s[524288];\nmov.u64 %l2, s; mov.u32 %r3, 0;\n"
      "$L: st.local.u32 [%l2], %r1; add.u64 %l2, %l2, 4096;\n"
      "add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 128; @%p1 bra $L;\n$M: bra $M;";
  const size_t before = memory_peak_mib();
  const LaunchReport report =
      run(kernel(body), {.grid = {64, 1, 1}, .block = {1024, 1, 1}, .steps_max = 10'000});
  EXPECT_FALSE(report.is_complete);
  EXPECT_LT(memory_peak_mib(), before + 2048);
}

// ---- Modules.
TEST_F(HostileKernels, OfHugeVariablesAreRefusedOrCostNothing) {
  expect_refusal(kernel(".shared .b8 s[4294967296]; mov.u32 %r1, s;"), "shared memory");
  expect_refusal(kernel(".local .b8 s[4294967296]; mov.u64 %l1, s;"), "local memory");
  expect_refusal(kernel("", ".global .b8 x[4294967296][4294967296];\n"), "too large");
  expect_refusal(kernel("", ".global .b8 x[4294967296];\n"), "device memory is full");
  const size_t before = memory_peak_mib();
  expect_refusal(kernel("", ".global .b8 x[4294967295] = {1};\n.global .b8 y[4294967295] = {1};\n"),
                 "device memory is full");
  EXPECT_LT(memory_peak_mib(), before + 256);
}

// Each part of a text takes some hundred times its bytes in the parser's memory.
TEST(HostileTexts, OfManyPartsAreRefused) {
  const ParseLimits limits{.parts_max = 1000};
  std::string functions, variables;
  for (int k = 0; k < 1001; ++k) {
    functions += ".func f" + std::to_string(k) + "() { ret; }\n";
    variables += ".shared .b8 s" + std::to_string(k) + ";\n";
  }
  const std::string texts[] = {
      kernel(repeated("{}", 1001)),
      kernel(repeated("x;", 1001)),
      kernel(repeated("x 1, 2, 3, 4;", 201)),
      kernel(variables),
      kernel("", functions),
  };
  for (const std::string& text : texts) {
    const Result<Module> module = parse(text, limits);
    ASSERT_FALSE(module);
    EXPECT_THAT(module.error().message, HasSubstr("too many parts"));
  }
  EXPECT_TRUE(parse(kernel(repeated("x;", 900)), limits));
  const Result<Module> modified = parse(kernel("x" + repeated(".a", 1000) + ";"));
  EXPECT_THAT(modified.error().message, HasSubstr("too many modifiers"));
}

TEST_F(HostileKernels, OfManyTargetsAreRefused) {
  const std::string list = "ts: .branchtargets " + repeated("$A, ", 100'000) + "$A;\n$A:\n";
  expect_refusal(kernel(list + repeated("brx.idx %r1, ts;\n", 20'000)), "too many branches");
}

TEST_F(HostileKernels, OfManyFunctionsDecodeInTime) {
  std::string functions, calls;
  for (int k = 0; k < 40'000; ++k) {
    const std::string name = "f" + std::to_string(k);
    functions += ".func " + name + "() { ret; }\n";
    calls += "call " + name + ";\n";
  }
  open(kernel(calls, functions));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(device_->decode(module_, "k"));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

TEST_F(HostileKernels, OfLongNamesHaveShortMessages) {
  const std::string name(1 << 20, 'a');
  expect_refusal(kernel("call " + name + ";"), "call: the function");
  expect_refusal(kernel("wgmma" + repeated(".aaaaaaaa", 20) + " %r1, " + name + ";"),
                 "not supported");
  const std::string path = kernel("") + ".file 2 \"" + name + "\"\n";
  expect_refusal(path, "path");
}

TEST_F(HostileKernels, WithoutOperandsAreRefused) {
  expect_refusal(kernel("atom.global.add.u32;"), "operand");
  expect_refusal(kernel("bar.red.popc.u32;"), "operand");
}

TEST_F(HostileKernels, MayHaveSharedArraysWithoutBytes) {
  EXPECT_TRUE(run(kernel(".shared .align 4 .b8 a[0]; .shared .align 4 .b8 b[4];")).is_complete);
}

TEST_F(HostileKernels, ThatLoadAMatrixWithoutAllLanesAreReported) {
  const std::string body =
      ".shared .align 16 .b8 s[512]; mov.u32 %r1, %laneid;\n.loc 1 7 1\n"
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];";
  const LaunchReport report = run(kernel(body), 1);
  ASSERT_THAT(report.findings, SizeIs(1U));
  EXPECT_THAT(describe(report.findings[0]), HasSubstr("lanes of the warp are missing"));
}

// A variable's name does not make it memory of the heap.
TEST_F(HostileKernels, ThatFreeAVariableAreEnded) {
  const std::string declarations =
      ".extern .func free(.param .b64 p);\n.visible .global .align 8 .b8 malloc[64];\n";
  const std::string body =
      "{ .param .b64 q; mov.u64 %l1, malloc; st.param.b64 [q], %l1;\n.loc 1 7 1\n"
      "call free, (q); }";
  expect_end(run(kernel(body, declarations)), FindingKind::kBadCall, "free");
  EXPECT_TRUE(device_->variable_bytes(module_, "malloc"));
}

TEST_F(HostileKernels, WithOperandsOfOtherWidthsAreRefused) {
  const char* bodies[] = {
      ".reg .b128 %q<3>; selp.b128 _, %q1, %q1, %p1;",
      ".reg .b128 %q<3>; ld.param.b128 %q1, [p]; selp.b128 _, %q1, %q1, %p1;",
      "selp.u8 _, 5, 6, %p1;",
      "mov.u8 _, 5;",
      "ts: .branchtargets $A;\n@%p1 brx.idx %r1, ts;\n$A: mov.u32 %r2, 1;",
  };
  for (const char* body : bodies) {
    SCOPED_TRACE(body);
    expect_refusal(kernel(body), "kernel k");
  }
}

TEST_F(HostileKernels, DoNotMakeAnAllocationOfAllMemory) {
  open(kernel(""));
  const uint64_t empty = device_->allocate(0, "empty").value();
  EXPECT_TRUE(device_->release(empty));
  EXPECT_FALSE(device_->allocate(SIZE_MAX, "all"));
  EXPECT_FALSE(device_->allocate(SIZE_MAX - 255, "all"));
}

}  // namespace
}  // namespace mc::ptx::hostile
