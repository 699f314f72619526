// SPDX-License-Identifier: Apache-2.0
#include "lex/split.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace mc::lex {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A source with a kernel; sources without one are not split.
constexpr const char* kKernel = "__global__ void k(float* x, int n) { x[0] = n; }\n";

Split split_of(const std::string& text) { return split_cuda(text + kKernel); }

std::string refusal_of(const std::string& text) { return split_of(text).refusal; }

TEST(Split, GivesEachSideItsFunctions) {
  const Split split = split_of(
      "__device__ float on_device(float v) { return v; }\n"
      "__host__ __device__ int on_both(int n) { return n; }\n"
      "int on_host(int n) {\n  return n;\n}\n");
  EXPECT_EQ(split.refusal, "");
  EXPECT_THAT(split.host, Not(HasSubstr("on_device")));
  EXPECT_THAT(split.device, HasSubstr("__device__ float on_device(float v) { return v; }"));
  EXPECT_THAT(split.host, HasSubstr("on_both(int n) { return n; }"));
  EXPECT_THAT(split.device, HasSubstr("on_both(int n) { return n; }"));
  EXPECT_THAT(split.host, HasSubstr("int on_host(int n) {"));
  EXPECT_THAT(split.device, Not(HasSubstr("on_host")));
  EXPECT_THAT(split.kernels, ElementsAre("k"));
}

TEST(Split, KeepsLines) {
  const std::string text =
      "// A comment\n"
      "int on_host() {\n#define TWO 2\n  return TWO;\n}\n" +
      std::string(kKernel) + "void run(float* x) {\n  k<<<\n    1, 2\n  >>>(x, 3);\n}\n";
  const Split split = split_cuda(text);
  EXPECT_EQ(split.refusal, "");
  for (const std::string& side : {split.host, split.device}) {
    EXPECT_EQ(std::ranges::count(side, '\n'), std::ranges::count(text, '\n')) << side;
    EXPECT_THAT(side, HasSubstr("#define TWO 2\n"));
  }
}

TEST(Split, ReplacesAKernelByALaunchFunctionOnTheHost) {
  const Split split = split_cuda(
      "namespace a {\ntemplate <typename T, int N = 4, class... Ts>\n"
      "__global__ __launch_bounds__(64) void k(const T* __restrict__ x, int (n)) {}\n}");
  EXPECT_EQ(split.refusal, "a parameter without a name");
  const Split other = split_cuda(
      "namespace a {\ntemplate <typename T, int N = 4, class... Ts>\n"
      "__global__ __launch_bounds__(64) void k(const T* __restrict__ x, int n, Ts... more) {}\n}");
  EXPECT_EQ(other.refusal, "");
  EXPECT_THAT(other.host, HasSubstr("{(void*)&x, (void*)&n, (void*)&more..., nullptr}; "
                                    "mc_at_launch((const void*)&k<T, N, Ts...>, mc_at_values)"));
  EXPECT_THAT(other.kernels, ElementsAre("a::k"));
}

TEST(Split, MakesALaunchACall) {
  const Split split = split_of(
      "#define RUN(x) k<<<1, 2>>>(x, 3)\n"
      "void run(float* x) { k<<<dim3(1), 2, 0, s>>>(x, 3); RUN(x); }\n");
  EXPECT_THAT(split.host,
              HasSubstr("(__cudaPushCallConfiguration(dim3(1), 2, 0, s) ? (void)0 : k(x, 3));"));
  EXPECT_THAT(split.host,
              HasSubstr("RUN(x) (__cudaPushCallConfiguration(1, 2) ? (void)0 : k(x, 3))"));
}

TEST(Split, GivesUnnamedNamespacesTheSameNameOnBothSides) {
  const Split split = split_cuda("namespace {\nstatic __global__ void k() {}\n}\n");
  EXPECT_EQ(split.refusal, "");
  EXPECT_THAT(split.kernels, ElementsAre("_GLOBAL__N_1::k"));
  for (const std::string& side : {split.host, split.device}) {
    EXPECT_THAT(side, HasSubstr("inline namespace _GLOBAL__N_1{"));
    EXPECT_THAT(side, Not(HasSubstr("static")));
  }
}

TEST(Split, MarksConstexprFunctionsForTheDevice) {
  const Split split = split_of("template <int N>\nconstexpr int twice() { return 2 * N; }\n");
  EXPECT_THAT(split.device, HasSubstr("__host__ __device__ constexpr int twice"));
  EXPECT_THAT(split.host, Not(HasSubstr("__host__")));
}

TEST(Split, KeepsTypesAndConstantsOnBothSidesAndVariablesOnTheHost) {
  const Split split = split_of(
      "struct Pair { float a, b; };\nenum class Mode { kA, kB };\nusing Real = float;\n"
      "constexpr int kTile = 16;\nstatic const float kScale = 2;\nstatic int calls = 0;\n"
      "std::vector<float> cache(16);\nextern __shared__ float tile[];\n");
  EXPECT_EQ(split.refusal, "");
  for (const char* both : {"struct Pair { float a, b; };", "enum class Mode { kA, kB };",
                           "using Real = float;", "kTile = 16;", "kScale = 2;"}) {
    EXPECT_THAT(split.host, HasSubstr(both));
    EXPECT_THAT(split.device, HasSubstr(both));
  }
  EXPECT_THAT(split.device, Not(HasSubstr("calls")));
  EXPECT_THAT(split.device, Not(HasSubstr("cache")));
  EXPECT_THAT(split.host, Not(HasSubstr("tile[]")));
  EXPECT_THAT(split.device, HasSubstr("tile[];"));
}

// A call of such a member on the host must not compile.
TEST(Split, HidesMembersOfTheDevice) {
  const Split split = split_of(
      "struct Sum {\n  float v;\n  __device__ explicit Sum(float a) : v{a} {}\n"
      "  __device__ float operator()(float a) const { return v + a; }\n"
      "  __host__ __device__ float get() const { return v; }\n};\n");
  EXPECT_EQ(split.refusal, "");
  EXPECT_THAT(split.host, HasSubstr("__attribute__((error(\"a function of the device\"))) explicit "
                                    "Sum(float a)"));
  EXPECT_THAT(split.host, Not(HasSubstr("v{a}")));
  EXPECT_THAT(split.host, Not(HasSubstr("v + a")));
  EXPECT_THAT(split.host, HasSubstr("get() const { return v; }"));
  EXPECT_THAT(split.device, HasSubstr("explicit Sum(float a) : v{a} {}"));
}

TEST(Split, SortsHeadersIntoTheSides) {
  const Split split =
      split_of("#include <torch/extension.h>\n#include <cuda_fp16.h>\n#include <mma.h>\n");
  EXPECT_THAT(split.device_headers, ElementsAre("<cuda_fp16.h>", "<mma.h>"));
  EXPECT_THAT(split.host, HasSubstr("#include <torch/extension.h>\n#include <cuda_fp16.h>\n"));
  EXPECT_THAT(split.host, Not(HasSubstr("mma")));
  EXPECT_THAT(split.device, Not(HasSubstr("#include")));
}

TEST(Split, RejectsConstructsThatWordsDoNotDetermine) {
  EXPECT_EQ(split_cuda("int f() { return 1; }").refusal, "no kernel");
  EXPECT_EQ(refusal_of("__constant__ float w[4];\n"), "__constant__");
  EXPECT_EQ(refusal_of("__device__ int counter;\n"), "a variable of the device");
  EXPECT_EQ(refusal_of("#define HD __host__ __device__\n"), "a mark in a macro");
  EXPECT_EQ(refusal_of("#if CUDART_VERSION > 1\n#endif\n"), "a foreign macro");
  EXPECT_EQ(refusal_of("#include \"own.cuh\"\n"), "a header of its own");
  EXPECT_EQ(refusal_of("#include <cub/cub.cuh>\n"), "a library");
  EXPECT_EQ(refusal_of("void f() { g([=] __device__(int i) { return i; }); }\n"),
            "a mark in a host function");
  EXPECT_EQ(refusal_of("__global__ void k(int n) {}\n"), "a kernel of several forms");
  EXPECT_EQ(refusal_of("template <> __global__ void h<4>(int n) {}\n"), "a specialised kernel");
  EXPECT_EQ(refusal_of("__global__ void h(int) {}\n"), "a parameter without a name");
  EXPECT_EQ(refusal_of("struct S { __global__ void h(int n) {} };\n"), "a kernel in a class");
  EXPECT_EQ(refusal_of("void f( {\n"), "brackets without partners");
  // Only nvcc rejects the use of these in a kernel, and a direct call of a kernel.
  EXPECT_EQ(refusal_of("const float kTable[] = {1, 2};\n"), "a constant that is no number");
  EXPECT_EQ(refusal_of("constexpr Pair kPair{1, 2};\n"), "a constant that is no number");
  EXPECT_EQ(refusal_of("struct S { static constexpr int kSizes[] = {1, 2}; };\n"),
            "an array of a class");
  EXPECT_EQ(refusal_of("void f(float* x) { k(x, 1); }\n"), "a kernel that is called");
  EXPECT_EQ(refusal_of("template <int N> __global__ void h(int n) {}\nvoid f() { h<4>(1); }\n"),
            "a kernel that is called");
}

TEST(Split, ReadsGuardsAndMacrosOfItsOwn) {
  EXPECT_EQ(refusal_of("#ifndef OWN\n#define OWN 1\n#endif\n#if OWN\n#endif\n"), "");
  EXPECT_EQ(refusal_of("#ifdef __CUDA_ARCH__\n#endif\n"), "");
}

}  // namespace
}  // namespace mc::lex
