// SPDX-License-Identifier: Apache-2.0
#include "compile/quick.h"

#include <gmock/gmock.h>

namespace mc::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Quick, SplitsFlagsIntoThoseOfHostAndDevice) {
  const auto sides = flags_of_sides({"-O3", "--use_fast_math", "-lineinfo", "-DTILE=16",
                                     "-U__CUDA_NO_HALF_OPERATORS__", "--std=c++20", "-Xcompiler",
                                     "-O2", "-Xptxas", "-v"});
  ASSERT_TRUE(sides.has_value());
  EXPECT_THAT(sides->host,
              ElementsAre("-O3", "-DTILE=16", "-U__CUDA_NO_HALF_OPERATORS__", "-std=c++20", "-O2"));
  EXPECT_THAT(sides->device, ElementsAre("--use_fast_math", "-DTILE=16",
                                         "-U__CUDA_NO_HALF_OPERATORS__", "-std=c++20"));
}

TEST(Quick, LeavesUnknownFlagsToNvcc) {
  for (const char* flag : {"-rdc=true", "-std=c++14", "--fmad=false", "-gencode=arch=compute_80",
                           "-Xcompiler", "-default-device", "-D", "-include"}) {
    EXPECT_FALSE(flags_of_sides({flag}).has_value()) << flag;
  }
  EXPECT_FALSE(flags_of_sides({"-Xcompiler", "-fopenmp"}).has_value());
  EXPECT_FALSE(flags_of_sides({"-Xptxas", "-dlcm=ca"}).has_value());
}

Unit unit_of(const std::string& text) {
  return {"cuda.cu", {{"prelude", "#include <torch/types.h>\n"}, {"cuda_sources[0]", text}}};
}

TEST(Quick, WritesATextForEachSide) {
  const QuickCompiler quick{.prelude = "/p.cuh", .halves = "/h.h"};
  const std::string kernel = "__global__ void k(int* x) { *x = 1; }\n";
  const auto plain = quick_source(quick, unit_of("#include <mma.h>\n" + kernel), {});
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->kernels, "k\n");
  EXPECT_FALSE(plain->uses_header);
  EXPECT_THAT(plain->host, HasSubstr("#include <torch/types.h>\n\n#line 1 \"cuda_sources[0]\"\n"));
  EXPECT_THAT(plain->device, HasSubstr("#include <mma.h>\n#include \"/p.cuh\"\n#line 1"));
  const auto halves = quick_source(
      quick, unit_of("#include <torch/extension.h>\nusing H = at::Half;\n" + kernel), {});
  ASSERT_TRUE(halves.has_value());
  EXPECT_TRUE(halves->uses_header);
  EXPECT_THAT(halves->device, HasSubstr("#include \"/h.h\"\n"));
}

TEST(Quick, AcceptsMacrosThatADialectPutsBeforeTheSource) {
  const std::string source = "#if DIALECT > 1\n#endif\n__global__ void k(int* x) { *x = 1; }\n";
  Extension extension;
  extension.prelude = "#define DIALECT 2\n";
  Unit unit = unit_of(source);
  EXPECT_FALSE(quick_source({}, unit, {}).has_value());
  unit.pieces.insert(unit.pieces.begin() + 1, {"prelude", extension.prelude});
  const auto taken = quick_source({}, unit, extension);
  ASSERT_TRUE(taken.has_value());
  EXPECT_THAT(taken->host, HasSubstr("#define DIALECT 2\n#line 1"));
  EXPECT_THAT(taken->device, HasSubstr("#define DIALECT 2\n#line 1"));
  extension.prelude = unit.pieces[1].text = "__device__ int f() { return 1; }\n";
  EXPECT_FALSE(quick_source({}, unit, extension).has_value());
}

TEST(Quick, LeavesUnitsOfSeveralFilesToNvcc) {
  const QuickCompiler quick;
  const std::string kernel = "__global__ void k(int* x) { *x = 1; }\n";
  Unit two = unit_of(kernel);
  two.pieces.push_back({"cuda_sources[1]", kernel});
  EXPECT_FALSE(quick_source(quick, two, {}).has_value());
  Extension with_header;
  with_header.files = {{"own.h", "int f();\n"}};
  EXPECT_FALSE(quick_source(quick, unit_of(kernel), with_header).has_value());
  Extension with_flag;
  with_flag.extra_cuda_cflags = {"-rdc=true"};
  EXPECT_FALSE(quick_source(quick, unit_of(kernel), with_flag).has_value());
}

}  // namespace
}  // namespace mc::compile
