// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "ptx/module.h"

namespace mc::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::string kernel(const std::string& body) {
  return std::string(kHead) + ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n" + body +
         "\n}\n";
}

Module module_of(const std::string& text) {
  Result<Module> module = parse(text);
  EXPECT_TRUE(module) << module.error().message;
  return module ? std::move(module).value() : Module{};
}

std::string error_of(const std::string& text, const ParseLimits& limits = {}) {
  const Result<Module> module = parse(text, limits);
  return module ? "" : module.error().message;
}

TEST(PtxParse, ReadsOpcodeModifiersTypesAndGuard) {
  const Module module =
      module_of(kernel(".reg .pred %p<2>; .reg .f32 %f<4>; .reg .b64 %rd<2>;\n"
                       "@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-8];"));
  const Instruction& one = module.functions.at(0).instructions.at(0);
  EXPECT_EQ(one.full_name(), "ld.global.nc.v2.f32");
  EXPECT_THAT(one.types, ElementsAre(Type::kF32));
  EXPECT_TRUE(one.is_guard_negated);
  EXPECT_EQ(module.functions[0].registers.at(static_cast<size_t>(one.guard)).name, "%p1");
  EXPECT_EQ(one.operands.at(0).parts.size(), 2U);
  EXPECT_EQ(one.operands.at(1).value, -8);
}

TEST(PtxParse, ReadsNumbersAsTheirBits) {
  struct Case {
    const char* text;
    int64_t value;
  };
  const Case cases[] = {{"42", 42},
                        {"-1", -1},
                        {"0x1F", 31},
                        {"0xFFFFFFFFFFFFFFFF", -1},
                        {"017", 15},
                        {"0b101", 5},
                        {"7U", 7},
                        {"0f3F800000", 0x3F800000},
                        {"-0f3F800000", 0xBF800000},
                        {"0d3FF0000000000000", 0x3FF0000000000000},
                        {"1.0", 0x3FF0000000000000}};
  for (const Case& one : cases) {
    const Module module =
        module_of(kernel(std::string(".reg .b64 %rd<2>; mov.b64 %rd1, ") + one.text + ";"));
    ASSERT_EQ(module.functions.size(), 1U);
    EXPECT_EQ(module.functions[0].instructions.at(0).operands.at(1).value, one.value) << one.text;
  }
}

TEST(PtxParse, TurnsLabelsIntoPositions) {
  const Module module = module_of(kernel("bra $b;\n$a: ret;\n$b: bra $a;\n"));
  const auto& code = module.functions.at(0).instructions;
  EXPECT_EQ(code.at(0).operands.at(0).value, 2);
  EXPECT_EQ(code.at(2).operands.at(0).value, 1);
}

TEST(PtxParse, KeepsNamesOfInnerBlocksApart) {
  const Module module =
      module_of(kernel(".reg .b32 %r<2>; mov.b32 %r1, 1;\n"
                       "{ .reg .b32 %r<2>; .param .b32 a; mov.b32 %r1, 2; bra $x; $x: }\n"
                       "{ .param .b32 a; bra $x; $x: }"));
  const Function& function = module.functions.at(0);
  EXPECT_NE(function.instructions.at(0).operands[0].id, function.instructions.at(1).operands[0].id);
  EXPECT_EQ(function.variables.size(), 2U);
  EXPECT_NE(function.variables[0].name, function.variables[1].name);
  EXPECT_EQ(function.instructions.at(3).operands[0].value, 4);
}

TEST(PtxParse, KnowsTheSourceLineOfEachInstruction) {
  const Module module = module_of(kernel(".loc 1 12 3\nmembar.gl;\n.loc 2 7 1\nmembar.gl;\n"
                                         ".loc 2 9 1, function_name $x, inlined_at 1 20 3\nret;") +
                                  ".file 1 \"/a/b.cu\"\n.file 2 \"c.h\", 123, 45\n");
  const auto& code = module.functions.at(0).instructions;
  EXPECT_EQ(code.at(0).location.line, 12);
  EXPECT_EQ(code.at(1).location.file, 2);
  EXPECT_EQ(code.at(2).location.line, 20);
  EXPECT_EQ(module.files.at(1), "/a/b.cu");
  EXPECT_EQ(module.files.at(2), "c.h");
}

TEST(PtxParse, FollowsFunctionsOfHeadersToTheLineOfTheMainFile) {
  const Module module =
      module_of(kernel(".loc 1 12 3\nmembar.gl;\n"
                       ".loc 2 9 1, function_name $x, inlined_at 1 20 3\n"
                       ".loc 3 5 1, function_name $y, inlined_at 2 9 1\n"
                       ".loc 2 7 4, function_name $z, inlined_at 3 5 1\nret;"));
  EXPECT_EQ(module.functions.at(0).instructions.at(1).location.file, 1);
  EXPECT_EQ(module.functions.at(0).instructions.at(1).location.line, 20);
}

TEST(PtxParse, PlacesParametersByTheirAlignment) {
  const Module module = module_of(std::string(kHead) +
                                  ".entry k(.param .u8 a, .param .align 8 .b8 b[12], .param .u32 c,"
                                  " .param .u64 .ptr .global .align 16 d) { ret; }");
  const auto& parameters = module.functions.at(0).parameters;
  EXPECT_EQ(parameters.at(1).offset, 8);
  EXPECT_EQ(parameters.at(2).offset, 20);
  EXPECT_EQ(parameters.at(3).offset, 24);
}

TEST(PtxParse, ReadsInitialValuesAndRelocations) {
  const Module module = module_of(std::string(kHead) +
                                  ".global .align 4 .u32 x[4] = {1, -1};\n"
                                  ".const .f32 c = 0f3F800000;\n"
                                  ".global .align 8 .u64 p[2] = {generic(x)+8, x};\n"
                                  ".extern .shared .align 16 .b8 s[];\n");
  EXPECT_THAT(module.variables.at(0).initial, ElementsAre(1, 0, 0, 0, 255, 255, 255, 255));
  const auto& relocations = module.variables.at(2).relocations;
  EXPECT_TRUE(relocations.at(0).is_generic);
  EXPECT_EQ(relocations.at(0).offset, 8);
  EXPECT_EQ(relocations.at(1).at, 8);
  EXPECT_TRUE(module.variables.at(3).is_dynamic);
}

TEST(PtxParse, ReadsTargetsOfIndexedBranches) {
  const Module module =
      module_of(kernel(".reg .b32 %r<2>;\nts: .branchtargets $a, $b;\n"
                       "brx.idx %r1, ts;\n$a: ret;\n$b: ret;"));
  EXPECT_THAT(module.functions.at(0).branch_targets.at("ts"), ElementsAre(1, 2));
}

TEST(PtxParse, RefusesBrokenTextWithItsLine) {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {kernel("bra $nowhere;"), "PTX line 6: there is no label \"$nowhere\""},
      {kernel("ret"), "PTX line 7: expected an operand, found \"}\""},
      {std::string(kHead) + ".entry k() { ret;", "the text ends"},
      {std::string(kHead) + ".global .b8 x[99999999999];", "a size: expected an integer"},
      {std::string(kHead) + ".global .b64 x[4294967296];", "is too large"},
      {std::string(kHead) + ".global .u8 x[1] = {1, 2};", "more initial values"},
      {std::string(kHead) + ".global .u8 x; .global .u8 x;", "is there twice"},
      {std::string(kHead) + ".global .u64 x = nothing;", "which is not declared"},
      {std::string(kHead) + ".global .texref t;", "textures"},
      {kernel("@%p1 ret;"), "the guard of an instruction is no register"},
      {kernel("$a: ret; $a: ret;"), "is there twice"},
      {kernel(".reg .b32 %r<2>; mov.b32 %r1, {{{{{{1}}}}}};"), "nested too deeply"},
      {kernel(".reg .b32 %r<2>; mov.b32 %r1, 0fFFFFFFFFF;"), "a number is malformed"},
      {kernel(".reg .b32 %r<2>; mov.b32 %r1, 99999999999999999999;"), "a number is malformed"},
      {kernel("{{{{{{{{{{{{"), "the text ends"},
      {std::string(kHead) + ".file 1 nothing", "expected a path"},
      {kernel("/* never ends"), "the text ends"},
      {kernel("\"never ends"), "expected an instruction"},
  };
  for (const Case& one : cases) EXPECT_THAT(error_of(one.text), HasSubstr(one.message)) << one.text;
}

TEST(PtxParse, RefusesABranchWithAWrongNumberOfOperands) {
  const std::string lists = "many: .branchtargets $a, $a, $a; one: .branchtargets $a; $a: ret; ";
  for (const char* branch :
       {"brx.idx %r1, many, one;", "brx.idx %r1;", "bra.uni $a, $a;", "bra;"}) {
    EXPECT_THAT(error_of(kernel(lists + branch)), HasSubstr("a wrong number of operands"));
  }
}

TEST(PtxParse, ObeysItsLimits) {
  std::string deep = "{";
  for (int i = 0; i < 200; ++i) deep += "{";
  EXPECT_THAT(error_of(kernel(deep)), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of(std::string(100, ' '), {.text_bytes_max = 10}),
              HasSubstr("the limit is 10"));
  EXPECT_THAT(error_of(kernel("ret; ret; ret;"), {.instructions_max = 2}), HasSubstr("too many"));
}

TEST(PtxParse, KeepsARegisterApartFromTheFamilyOfItsName) {
  const Result<Module> module =
      parse(kernel(".reg .b32 a; .reg .b16 a<2>; mov.b32 a, {a0, a1}; mov.b16 a1, 7;"));
  ASSERT_TRUE(module) << module.error().message;
  const Function& function = module->functions[0];
  const Instruction& one = function.instructions[0];
  const auto type_of_register = [&](const Operand& operand) {
    return function.registers[static_cast<size_t>(operand.id)].type;
  };
  EXPECT_EQ(type_of_register(one.operands[0]), Type::kB32);
  EXPECT_EQ(type_of_register(one.operands[1].parts[1]), Type::kB16);
  EXPECT_EQ(one.operands[1].parts[1].id, function.instructions[1].operands[0].id);
}

TEST(PtxParse, TakesHugeCountsOfRegistersWithoutMakingThem) {
  const Module module = module_of(kernel(".reg.b32 %r<2000000000>; mov.b32 %r1999999999, 1;"));
  EXPECT_EQ(module.functions.at(0).registers.size(), 1U);
}

TEST(PtxParse, SurvivesEveryPrefixOfAModule) {
  const std::string text = kernel(
      ".reg .pred %p<2>; .reg .b32 %r<4>; .loc 1 2 3\n @%p1 bra $a; { .param .b32 x; "
      "call.uni (x), f, (x, %r1); } $a: shfl.sync.down.b32 %r1|%p1, %r2, 0x1f, -1, 0f00000000;");
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<Module> module = parse(text.substr(0, size));
    const std::string error = module ? "PTX line" : module.error().message;
    EXPECT_THAT(error, HasSubstr("PTX line"));
  }
}

}  // namespace
}  // namespace mc::ptx
