// SPDX-License-Identifier: Apache-2.0
#include "lex/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "lex/random_text.h"

namespace mc::lex {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string rewritten(std::string_view source) { return rewrite_for_cpu(source).text; }

std::vector<std::string> constructs(std::string_view source) {
  std::vector<std::string> found;
  for (const Unsupported& unsupported : rewrite_for_cpu(source).unsupported) {
    found.push_back(unsupported.spelling + "@" + std::to_string(unsupported.line));
  }
  return found;
}

// The launch that the rewriter should write.
std::string launch(const std::string& config, const std::string& callee,
                   const std::string& arguments, const std::string& name = "") {
  return "::mc_emu::launch(::mc_emu::Config(" + config + "), \"" + (name.empty() ? callee : name) +
         "\", [=](auto... mc_a) MC_EMU_CALL { " + callee + "(mc_a...); }" +
         (arguments.empty() ? "" : ", " + arguments) + ")";
}

struct Row {
  std::string source;
  std::string expected;
};

class Launches : public ::testing::TestWithParam<Row> {};

TEST_P(Launches, BecomeCallsOfTheEmulator) {
  EXPECT_EQ(rewritten(GetParam().source), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Callees, Launches,
    ::testing::Values(
        Row{"k<<<1, 2>>>(x);", launch("1, 2", "k", "x") + ";"},
        Row{"k<<<1>>>();", launch("1", "k", "") + ";"},
        Row{"k<<<g, b, n, s>>>(x, y);", launch("g, b, n, s", "k", "x, y") + ";"},
        Row{"::ns::k<A, 3><<<1, 2>>>(x);", launch("1, 2", "::ns::k<A, 3>", "x") + ";"},
        Row{"return ::k<<<1, 2>>>(x);", "return " + launch("1, 2", "::k", "x") + ";"},
        Row{"A<B>::k<<<1, 2>>>(x);", launch("1, 2", "A<B>::k", "x") + ";"},
        Row{"k<T, (N > 2)><<<1, 2>>>(x);", launch("1, 2", "k<T, (N > 2)>", "x") + ";"},
        Row{"k<1 << 3><<<1, 2>>>(x);", launch("1, 2", "k<1 << 3>", "x") + ";"},
        Row{"k<V<V<int>>><<<1, 2>>>(x);", launch("1, 2", "k<V<V<int>>>", "x") + ";"},
        Row{"T::template k<3><<<1, 2>>>(x);", launch("1, 2", "T::template k<3>", "x") + ";"},
        Row{"self->k<<<1, 2>>>(x);", launch("1, 2", "self->k", "x") + ";"},
        Row{"table[i + 1]<<<1, 2>>>(x);", launch("1, 2", "table[i + 1]", "x") + ";"},
        Row{"pick<T>(n)<<<1, 2>>>(x);", launch("1, 2", "pick<T>(n)", "x") + ";"},
        Row{"(*fn)<<<1, 2>>>(x);", launch("1, 2", "(*fn)", "x") + ";"},
        Row{"if (a) (*fn)<<<1, 2>>>(x);", "if (a) " + launch("1, 2", "(*fn)", "x") + ";"},
        Row{"(c ? k1 : k2)<<<1, 2>>>(x);", launch("1, 2", "(c ? k1 : k2)", "x") + ";"},
        Row{"else k<<<1, 2>>>(x);", "else " + launch("1, 2", "k", "x") + ";"},
        Row{"k /* why */ <<<1, 2>>>(x);", launch("1, 2", "k", "x") + ";"}));

INSTANTIATE_TEST_SUITE_P(
    Configurations, Launches,
    ::testing::Values(
        Row{"k<<<dim3{1, 2}, 3>>>(x);", launch("dim3{1, 2}, 3", "k", "x") + ";"},
        Row{"k<<<f(1, 2), [&] { return a >> 1; }()>>>(x);",
            launch("f(1, 2), [&] { return a >> 1; }()", "k", "x") + ";"},
        Row{"k<<<n < 5 ? 1 : 2, 3>>>(x);", launch("n < 5 ? 1 : 2, 3", "k", "x") + ";"},
        Row{"k<<<1, f<V<V<int>>>(2)>>>(x);", launch("1, f<V<V<int>>>(2)", "k", "x") + ";"},
        Row{"k << <1, 2>> > (x);", launch("1, 2", "k", "x") + ";"},
        Row{"k<<<1, at::cuda::getCurrentCUDAStream()>>>(x);",
            launch("1, at::cuda::getCurrentCUDAStream()", "k", "x") + ";"},
        Row{"k<<<1, 2>>>(NULL, f(NULL), x);", launch("1, 2", "k", "nullptr, f(NULL), x") + ";"},
        Row{"k<<<1, 2>>>(torch::kCUDA);", launch("1, 2", "k", "torch::kPrivateUse1") + ";"},
        Row{"k<torch::kCUDA><<<1, 2>>>(x);", launch("1, 2", "k<torch::kPrivateUse1>", "x") + ";"},
        Row{"k<'\"'><<<1, 2>>>(x);", launch("1, 2", "k<'\"'>", "x", "k<'\\\"'>") + ";"},
        Row{"k<<<1, [&] { j<<<3, 4>>>(y); return 2; }()>>>(x);",
            launch("1, [&] { " + launch("3, 4", "j", "y") + "; return 2; }()", "k", "x") + ";"}));

INSTANTIATE_TEST_SUITE_P(
    LinesAndMacros, Launches,
    ::testing::Values(
        Row{"k<A,\n  B><<<\n1,\n2\n>>>\n(x,\n y);",
            "::mc_emu::launch(::mc_emu::Config(\n\n1,\n2\n), \"k<A, B>\", [=](auto... mc_a) "
            "MC_EMU_CALL { "
            "k<A, B>(mc_a...); }, \nx,\n y);"},
        Row{"#define L(K, n, ...) \\\n  K<T><<<n, \\\n  2>>>(__VA_ARGS__)\n",
            "#define L(K, n, ...) \\\n  ::mc_emu::launch(::mc_emu::Config(n, \\\n  2), \"K<T>\", "
            "[=](auto... mc_a) MC_EMU_CALL { K<T>(mc_a...); }, ##__VA_ARGS__)\n"},
        Row{"#define L(K) K##_fwd \\\n <<<1, 2>>>(x)\n",
            "#define L(K) ::mc_emu::launch(::mc_emu::Config(\\\n1, 2), \"K##_fwd\", "
            "[=](auto... mc_a) MC_EMU_CALL { K##_fwd(mc_a...); }, x)\n"},
        Row{"k<<<1,\n#ifdef A\n 2\n#else\n 3\n#endif\n>>>(x);",
            "::mc_emu::launch(::mc_emu::Config(1,\n#ifdef A\n 2\n#else\n 3\n#endif\n), \"k\", "
            "[=](auto... mc_a) MC_EMU_CALL { k(mc_a...); }, x);"}));

INSTANTIATE_TEST_SUITE_P(
    LaunchBounds, Launches,
    ::testing::Values(
        Row{"__global__ void __launch_bounds__(128) k(float* x) { x[0] = 1; }",
            "__global__ void __launch_bounds__(128) k(float* x) { "
            "::mc_emu::check_launch_bounds(128); x[0] = 1; }"},
        Row{"template <int N> __launch_bounds__(N * 2, 4) __maxnreg__(64) __global__ void k() {}",
            "template <int N> __launch_bounds__(N * 2, 4) __maxnreg__(64) __global__ void k() { "
            "::mc_emu::check_launch_bounds(N * 2, 4);}"},
        Row{"__global__ void __launch_bounds__(128) k(int); void f() {}",
            "__global__ void __launch_bounds__(128) k(int); void f() {}"}));

class Untouched : public ::testing::TestWithParam<std::string> {};

TEST_P(Untouched, StaysAsItIs) { EXPECT_EQ(rewritten(GetParam()), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    All, Untouched,
    ::testing::Values("a = b >> c << d; e >>= f; g <<= h;", "std::vector<std::vector<int>> v;",
                      "V<V<V<int>>> v(1); f<V<V<V<int>>>>(x);", "operator<<<T>(x);",
                      "// k<<<1, 2>>>(x)\n/* is_cuda() */", "\"k<<<1, 2>>>(x) is_cuda\"",
                      "R\"(k<<<1, 2>>>(x); extern __shared__ float s[];)\"", "'<<<'",
                      "dim3 blockDim(1), gridDim(2); prop.warpSize;", "#include <cuda_runtime.h>\n",
                      "__shared__ float tile[32][33];", "extern int x; extern \"C\" void f();",
                      "k<<<1, 2;", "<<<1, 2>>>(x);", "k<<<1, 2>>> x;", "k<<<1, 2>>>(x",
                      "std::string(\"cuda\"); CUDA; my::CUDA;", "int is_cuda_tensor, mykCUDA;"));

class Shared : public ::testing::TestWithParam<Row> {};

TEST_P(Shared, DynamicMemoryBecomesAPointerOrAnObject) {
  EXPECT_EQ(rewritten(GetParam().source), GetParam().expected);
}

constexpr const char* kMemory = "(::mc_emu::dynamic_shared())";

INSTANTIATE_TEST_SUITE_P(
    InAFunction, Shared,
    ::testing::Values(
        Row{"void f() { extern __shared__ float s[]; }",
            std::string("void f() { float* s = static_cast<float*>") + kMemory + "; }"},
        Row{"void f() { extern __shared__ __align__(sizeof(T)) unsigned char s[]; }",
            std::string("void f() { unsigned char* s = static_cast<unsigned char*>") + kMemory +
                "; }"},
        Row{"void f() { extern\n__shared__ alignas(16)\nfloat s[]; }",
            std::string("void f() { float* s = static_cast<float*>") + kMemory + "\n\n; }"},
        Row{"void f() { __shared__ extern volatile A<B, C> s[]; }",
            std::string("void f() { volatile A<B, C>* s = static_cast<volatile A<B, C>*>") +
                kMemory + "; }"},
        Row{"void f() { extern __shared__ float s[][32]; }",
            std::string("void f() { float (*s)[32] = static_cast<float (*)[32]>") + kMemory +
                "; }"},
        Row{"void f() { extern __shared__ int a[], b[]; }",
            std::string("void f() { int* a = static_cast<int*>") + kMemory +
                "; int* b = static_cast<int*>" + kMemory + "; }"},
        Row{"#define S extern __shared__ float s[];\n",
            std::string("#define S float* s = static_cast<float*>") + kMemory + ";\n"}));

INSTANTIATE_TEST_SUITE_P(
    OutsideOfFunctions, Shared,
    ::testing::Values(
        Row{"extern __shared__ float s[];", "static ::mc_emu::DynamicShared<float> s;"},
        Row{"namespace a { namespace { extern __shared__ float4 s[]; } }",
            "namespace a { namespace { static ::mc_emu::DynamicShared<float4> s; } }"},
        Row{"extern \"C\" { extern __shared__ char s[]; }",
            "extern \"C\" { static ::mc_emu::DynamicShared<char> s; }"},
        Row{"extern __shared__ char s[]; void f() { float* p = reinterpret_cast<float*>(s); }",
            "static ::mc_emu::DynamicShared<char> s; "
            "void f() { float* p = reinterpret_cast<float*>(::mc_emu::decayed(s)); }"},
        Row{"extern __shared__ float s[][4];", "static ::mc_emu::DynamicShared<float[4]> s;"}));

INSTANTIATE_TEST_SUITE_P(
    Names, Launches,
    ::testing::Values(
        Row{"TORCH_CHECK(x.is_cuda(), \"must be CUDA\");",
            "TORCH_CHECK(x.is_privateuseone(), \"must be CUDA\");"},
        Row{"asm volatile(\"mov.u32 %0, %%laneid;\" : \"=r\"(x));",
            "::mc_emu::ptx(\"mov.u32 %0, %%laneid;\", __LINE__, 0, ::mc_emu::ptx_output(x));"},
        Row{"asm(\"a\"\n\"b\" : \"+f\"(x), \"=r\"(y[i]) : \"l\"(f(p, q)) : \"memory\");",
            "::mc_emu::ptx(\"a\" \"b\", __LINE__, 0, ::mc_emu::ptx_update(x), "
            "::mc_emu::ptx_output(y[i]), ::mc_emu::ptx_input(f(p, q))\n);"},
        Row{"asm volatile(\"st.u32 [%0], %1;\" :: \"l\"(p), \"r\"(v));",
            "::mc_emu::ptx(\"st.u32 [%0], %1;\", __LINE__, 0, ::mc_emu::ptx_input(p), "
            "::mc_emu::ptx_input(v));"},
        Row{"asm volatile(\"bar.sync 0;\" ::: \"memory\");",
            "::mc_emu::ptx(\"bar.sync 0;\", __LINE__, 0);"},
        Row{"asm(\"bar.sync 0;\");", "::mc_emu::ptx(\"bar.sync 0;\", __LINE__, 1);"},
        Row{"asm(\"x\" : [n] \"=r\"(x));", "::mc_emu::unsupported(\"inline PTX (asm)\");"},
        Row{"__global__ void k(int); f((void*)k, 1);",
            "__global__ void k(int); f(::mc_emu::kernel_pointer(k), 1);"},
        Row{"__global__ void k(); void* p = reinterpret_cast<const void*>(&k);",
            "__global__ void k(); void* p = ::mc_emu::kernel_pointer(&k);"},
        Row{"template <class T> __global__ void __launch_bounds__(64) k(T); f((const "
            "void*)k<int>);",
            "template <class T> __global__ void __launch_bounds__(64) k(T); "
            "f(::mc_emu::kernel_pointer(k<int>));"},
        Row{"cudaLaunchKernel((void*)chosen, g, b, a);",
            "cudaLaunchKernel(::mc_emu::kernel_pointer(chosen), g, b, a);"},
        Row{"f((void*)pointer);", "f((void*)pointer);"},
        Row{"asm volatile(\"\" ::: \"memory\");", "asm volatile(\"\" ::: \"memory\");"},
        Row{"__builtin_memcpy(&a, &b, 12);", "memcpy(&a, &b, 12);"},
        Row{"_mm256_maskstore_ps(p, m, v); int _ZGVs;", "mc_not_cuda(p, m, v); int mc_no_guard;"},
        Row{"__attribute__((no_sanitize(\"thread\"))) void f();",
            "__attribute__((mc_always_checked(\"thread\"))) void f();"},
        Row{"x.type().is_cuda()", "x.device().is_privateuseone()"},
        Row{"#define C(x) x.is_cuda()\n", "#define C(x) x.is_privateuseone()\n"},
        Row{"o.device(torch::kCUDA, 0)", "o.device(torch::kPrivateUse1, 0)"},
        Row{"c10::DeviceType::CUDA", "c10::DeviceType::PrivateUse1"},
        Row{"torch::Device(\"cuda:0\"); o.device(\"cuda\")",
            "torch::Device(\"privateuseone\"); o.device(\"privateuseone\")"},
        Row{"TORCH_LIBRARY_IMPL(ns, CUDA, m) {}", "TORCH_LIBRARY_IMPL(ns, PrivateUse1, m) {}"}));

TEST(Unsupported, NamesTheConstructAndEachOfItsLines) {
  EXPECT_THAT(constructs("#include <nvrtc.h>\n#include <cute/tensor.hpp>\ncute::Layout<A> f;"),
              ElementsAre("<nvrtc.h>@1"));
  EXPECT_THAT(constructs("cudaTextureObject_t t; tex2D(t);\ncudaTextureObject_t u;"),
              ElementsAre("cudaTextureObject_t@1", "cudaTextureObject_t@2"));
}

TEST(Unsupported, FindsALaunchInDeviceCodeOnly) {
  EXPECT_THAT(constructs("__global__ void p() {\n if (a) { k<<<1, 1>>>(x); }\n}"),
              ElementsAre("<<<@2"));
  EXPECT_THAT(constructs("__global__ void p() {}\nvoid f() { k<<<1, 1>>>(x); }"), IsEmpty());
  EXPECT_THAT(constructs("struct S { __device__ void d(); void h() { k<<<1, 1>>>(x); } };"),
              IsEmpty());
}

TEST(Unsupported, ForgivesWhatTheEmulatorRunsAndWhatIsNoCode) {
  EXPECT_THAT(constructs("asm volatile(\"\" ::: \"memory\"); // asm(\"ptx\")\n\"cute::Layout\";"),
              IsEmpty());
  EXPECT_THAT(constructs("int cutlass = 1, cute = 2; void asm_free();"), IsEmpty());
}

TEST(RewriteForCpu, PutsAlignasInFrontOfTheSpecifiersOfASharedVariable) {
  EXPECT_EQ(rewrite_for_cpu("__shared__ alignas(16) float x[4];").text,
            "alignas(16) __shared__ float x[4];");
  EXPECT_EQ(rewrite_for_cpu("static __shared__ alignas(f(1, 2)) char x;").text,
            "alignas(f(1, 2)) static __shared__ char x;");
}

TEST(RewriteForCpu, ChecksTheBoundsOfPyTorchsMacros) {
  EXPECT_EQ(rewrite_for_cpu("C10_LAUNCH_BOUNDS_1(256) __global__ void k(int* x) { *x = 1; }").text,
            "C10_LAUNCH_BOUNDS_1(256) __global__ void k(int* x) { "
            "::mc_emu::check_launch_bounds(256); *x = 1; }");
}

TEST(RewriteForCpu, KeepsTheNumberOfLinesOfAnyText) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const std::string source = random_text(seed, 60);
    const std::string text = rewritten(source);
    ASSERT_EQ(std::count(source.begin(), source.end(), '\n'),
              std::count(text.begin(), text.end(), '\n'))
        << "seed " << seed << "\n"
        << source << "\n---\n"
        << text;
  }
}

TEST(Unsupported, ALaunchBehindAnUnclosedBraceIsLeftToTheCompiler) {
  EXPECT_THAT(constructs("__global__ void k() { k<<<1, 1>>>(); }"), ElementsAre("<<<@1"));
  EXPECT_THAT(constructs("__global__ void k() { if (1) {\n}\nvoid f() { k<<<1, 1>>>(); }"),
              IsEmpty());
}

TEST(RewriteForCpu, ChangesNothingTheSecondTime) {
  const std::string source =
      "__global__ void k() { extern __shared__ float s[]; }\nvoid f() { k<<<1, 2>>>(x.is_cuda()); "
      "}";
  EXPECT_EQ(rewritten(rewritten(source)), rewritten(source));
}

TEST(RewriteForCpu, IsLinearInDeepAndLongTexts) {
  std::string deep(200000, '(');
  std::string angles = "k";
  for (int i = 0; i < 50000; ++i) angles += "<V";
  std::string launches;
  for (int i = 0; i < 20000; ++i) launches += "k<a><<<1, 2>>>(x)";
  for (const std::string& source : {deep, angles + "<<<1>>>(x)", launches + ";"}) {
    EXPECT_GE(rewritten(source).size(), source.size());
  }
}

}  // namespace
}  // namespace mc::lex
