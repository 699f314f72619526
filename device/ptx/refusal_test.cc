// SPDX-License-Identifier: Apache-2.0
//
// The decoder's refusals: wrong PTX and unsupported instructions, by name and line.
#include <gmock/gmock.h>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::HasSubstr;

// A kernel with registers of all widths; the body begins at line 9 of the text.
std::string text_with(const std::string& body) {
  return ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"made.cu\"\n"
         ".global .align 4 .u32 counter;\n.entry k(.param .u64 p)\n{\n"
         ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %l<9>; .reg .f32 %f<9>;\n" +
         body + "\nret;\n}\n.extern .func unknown_function;\n.func twice() { ret; }\n";
}

class Refusals : public Kernels {
 protected:
  Error error_of(const std::string& body) {
    open(text_with(body));
    const Result<KernelFacts> facts = device_->decode(module_, "k");
    return facts ? Error{ErrorCode::kIo, "accepted"} : facts.error();
  }
};

struct Case {
  const char* body;
  const char* message;
};

TEST_F(Refusals, NameWhatTheExecutorLacks) {
  const Case cases[] = {
      {"wgmma.fence.sync.aligned;", "wgmma.fence.sync.aligned: this instruction is not supported"},
      {"barrier.cluster.arrive;", "clusters of blocks are not supported"},
      {"cp.async.bulk.commit_group;", "copies by TMA"},
      {"ld.shared::cluster.u32 %r1, [%r2];", "memory of clusters"},
      {"tex.1d.v4.f32.s32 %f1, %r1, %r2;", "this instruction is not supported"},
      {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2};",
       "this product of matrices is not supported"},
      {"mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 1;", "this instruction is not supported"},
      {"redux.sync.min.f32 %f1, %f2, -1;", "redux.sync.min.f32: this form"},
      {"call unknown_function;", "the function \"unknown_function\" is not in the module"},
      {"shfl.down.b32 %r1, %r2, 1, 31;", "shfl"},
      {"atom.global.add.v2.f32 %f1, [%l1], %f2;", "atomics of vectors"},
      {"add.rz.f16 %h1, %h2, %h3;", "this rounding"},
      {"cvt.rn.e4m3x2.f32 %h1, %f1, %f2;", "this conversion is not supported"},
      {"cvt.rz.satfinite.e4m3x2.f32 %h1, %f1, %f2;", "this conversion is not supported"},
      {"cvt.rn.satfinite.f16x2.e4m3x2 %r1, %h1;", "this conversion is not supported"},
      {"cvt.rn.satfinite.e4m3x2.bf16x2 %h1, %r1;", "this form of the instruction"},
      {"cvt.rn.bf16x2.e5m2x2 %r1, %h1;", "this form of the instruction"},
      {"cvt.rn.satfinite.e4m3x2.e5m2x2 %h1, %r2;", "this form of the instruction"},
      {"cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2;", "this conversion is not supported"},
      {"ld.global.e4m3 %h1, [%l1];", "this form of the instruction"},
      {"st.global.e4m3x2 [%l1], %h1;", "this form of the instruction"},
      {"mov.e4m3x2 %h1, %h2;", "e4m3x2"},
      {"add.e4m3x2 %h1, %h2, %h3;", "this type"},
      {"setp.lt.e5m2 %p1, %h1, %h2;", "operands of this width"},
      {"set.lt.e4m3.f32 %h1, %f1, %f2;", "e4m3"},
      {"atom.global.add.e5m2 %h1, [%l1], %h2;", "e5m2"},
      {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32 {%f1, %f2, %f3, %f4}, "
       "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
       ".kind::f8f6f4 is not supported"},
      {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f16 {%f1, %f2, %f3, %f4}, "
       "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8};",
       "this form of the instruction"},
      {"stmatrix.sync.aligned.m16n8.x2.shared.b8 [%r3], {%r1, %r2};",
       "this matrix is not supported"},
      {"cvt.rn.tf32.f32 %r1, %f1;", "this conversion is not supported"},
      {"cvt.rn.satfinite.f16.f32 %h1, %f1;", "cvt with .satfinite is not supported"},
      {"call k;", "a kernel that calls a kernel"},
      {"add.f32.unheard_of %f1, %f2, %f3;", ".unheard_of is not supported"},
      {"ld.global.u32.unified %r1, [%l1];", ".unified is not supported"},
  };
  for (const Case& one : cases) {
    const Error error = error_of(one.body);
    EXPECT_THAT(error.message, HasSubstr(one.message)) << one.body;
    EXPECT_THAT(error.message, HasSubstr("PTX line 9")) << one.body;
  }
}

TEST_F(Refusals, NameWhatIsWrong) {
  const Case cases[] = {
      {"add.s32 %r1, %l1, %r2;", "the register %l1 has the wrong width"},
      {"add.s32 %l1, %r1, %r2;", "the result's register has the wrong width"},
      {"add.s32 %r1, %r2;", "an operand is missing"},
      {"add.s32 %r1, %r2, %r3, %r4;", "a wrong number of operands"},
      {"add.s32 %r1, %r2, nothing;", "\"nothing\" is not declared"},
      {"mov.u32 %r1, %nothing;", "the register %nothing is not declared"},
      {"setp.lt.s32 %r1, %r2, %r3;", "the result is no predicate"},
      {"setp.s32 %p1, %r2, %r3;", "is not supported"},
      {"selp.b32 %r1, %r2, %r3, %r4;", "a predicate is missing"},
      {"ld.global.v2.u32 %r1, [%l1];", "it has 1 registers in place of 2"},
      {"ld.global.v4.u32 {%r1, %r2}, [%l1];", "it has 2 registers in place of 4"},
      {"ld.global.u32 %r1, %l1;", "an address is missing"},
      {"ld.global.u32 %r1, [%h1];", "the register of an address has the wrong width"},
      {"ld.param.u64 %l1, [p+4];", "it reads beyond the parameter"},
      {"st.global.u64 [%l1], %r1;", "this form of the instruction is not supported"},
      {"cp.async.ca.shared.global [%r1], [%l1], 5;", "a copy has 4, 8 or 16 bytes"},
      {"mov.b32 %r1, {%h1, %h2, %h3};", "parts of a register"},
      {"call (a), twice, (b);", "an argument that is no .param variable"},
      {"brx.idx %r1, nowhere;", "its list of targets is missing"},
      {"bar.red.popc.u32 %r1, 0;", "an operand is missing"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f2};",
       "a fragment has a wrong number of registers"},
      {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.s8.f32 {%f1}, {%r1}, {%r2}, {%f2};",
       "a and b have different types"},
      {"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r3], {%r1};", "a wrong number of registers"},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [%r3];",
       "a wrong number of registers"},
  };
  for (const Case& one : cases) {
    EXPECT_THAT(error_of(one.body).message, HasSubstr(one.message)) << one.body;
  }
}

TEST_F(Refusals, HaveTheLineOfTheSource) {
  EXPECT_THAT(error_of(".loc 1 77 3\nwgmma.fence.sync.aligned;").message,
              HasSubstr("(made.cu:77)"));
}

TEST_F(Refusals, ComeFromLoadingTooLargeSharedMemory) {
  EXPECT_THAT(error_of(".shared .b8 s[300000]; mov.u32 %r1, s;").message,
              HasSubstr("more than 256 KiB of shared memory"));
  EXPECT_THAT(error_of(".local .b8 s[30000000]; mov.u32 %r1, s;").message,
              HasSubstr("more than 16 MiB of local memory"));
}

TEST_F(Refusals, DoNotReachWhatIsRight) {
  EXPECT_EQ(error_of("add.s32 %r1, %r2, 5;\n@%p1 bar.sync 0;\ncall twice;").message, "accepted");
}

TEST_F(Refusals, OfDevicesNameTheirOptions) {
  DeviceOptions options;
  options.lanes = 64;
  const auto device = Device::create(options);
  EXPECT_THAT(device.error().message, HasSubstr("warps of 64 lanes"));
}

TEST_F(Refusals, OfMemoryKeepItsBounds) {
  open(text_with(""));
  const uint64_t x = put(std::vector<int>(4), "x");
  uint8_t bytes[32] = {};
  EXPECT_TRUE(device_->copy_in(x, {bytes, 16}));
  EXPECT_FALSE(device_->copy_in(x, {bytes, 17}));
  EXPECT_FALSE(device_->copy_out(x + 8, {bytes, 9}));
  EXPECT_FALSE(device_->copy_out(0, {bytes, 1}));
  EXPECT_FALSE(device_->fill(x + 16, 0, 1));
  EXPECT_FALSE(device_->allocate(size_t{1} << 40, "huge"));
  EXPECT_TRUE(device_->release(x));
  EXPECT_FALSE(device_->release(x));
  EXPECT_FALSE(device_->copy_in(x, {bytes, 1}));
  EXPECT_EQ(put(std::vector<int>(4), "again"), x);
}

// An unsupported instruction in a branch that no thread takes is not reported.
TEST_F(Refusals, CountWhereAThreadReachesThem) {
  open(
      text_with("ld.param.u64 %l1, [p];\nld.global.u32 %r1, [%l1];\nsetp.eq.u32 %p1, %r1, 7;\n"
                "@%p1 bra skip;\nwgmma.fence.sync.aligned;\nskip: st.global.u32 [%l1], 9;"));
  EXPECT_THAT(device_->decode(module_, "k").error().message, HasSubstr("wgmma.fence"));
  EXPECT_TRUE(device_->facts(module_, "k"));
  const uint64_t taken = put(std::vector<int>{7}, "x"), reached = put(std::vector<int>{8}, "y");
  const LaunchReport past = launch({.kernel = "k", .arguments = Arguments().add(taken)});
  EXPECT_TRUE(past.is_complete && past.findings.empty());
  EXPECT_EQ(get<int>(taken, 1)[0], 9);
  const LaunchReport ended = launch({.kernel = "k", .arguments = Arguments().add(reached)});
  EXPECT_FALSE(ended.is_complete);
  ASSERT_EQ(ended.findings.size(), 1U);
  EXPECT_EQ(ended.findings[0].kind, FindingKind::kUnsupported);
  EXPECT_THAT(ended.findings[0].detail, HasSubstr("PTX line 13: wgmma.fence"));
  EXPECT_EQ(get<int>(reached, 1)[0], 8);
}

TEST_F(Refusals, OfUnknownOpcodesAreErrors) {
  const Error error = error_of("swish.approx.f32 %f1, %f2;");
  EXPECT_EQ(error.code, ErrorCode::kInvalidInput);
  EXPECT_THAT(error.message, HasSubstr("there is no such instruction"));
  // An instruction of the ISA that this executor lacks is unsupported, not invalid.
  EXPECT_EQ(error_of("vadd.s32.s32.s32 %r1, %r2, %r3;").code, ErrorCode::kUnsupported);
}

TEST_F(Refusals, OfModulesLeaveNothing) {
  open(text_with(""));
  EXPECT_TRUE(device_->variable(module_, "counter"));
  EXPECT_FALSE(device_->variable(module_, "nothing"));
  EXPECT_TRUE(device_->unload(module_));
  EXPECT_FALSE(device_->unload(module_));
  EXPECT_TRUE(device_->kernels(module_).empty());
  EXPECT_FALSE(device_->launch({.module = module_, .kernel = "k"}));
  EXPECT_FALSE(device_->load(".global .u32 x = y;"));
}

}  // namespace
}  // namespace mc::ptx
