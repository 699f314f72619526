// SPDX-License-Identifier: Apache-2.0
//
// Outputs of nvcc 13.0.88 and g++ 12.2 for the given sources, byte for byte.
#include <random>

#include <gmock/gmock.h>

#include "compile/diagnostics.h"
#include "compile/kernel_resources.h"
#include "compile/testing/diagnostics_properties.h"

namespace mc::compile {
namespace {

using ::testing::HasSubstr;

Extension extension_of(std::string source, std::vector<SourceFile> files = {}) {
  Extension extension;
  extension.name = "ext";
  extension.key = std::string(64, 'a');
  extension.cuda_sources = {std::move(source)};
  extension.files = std::move(files);
  return extension;
}

std::vector<task::Diagnostic> parse(const std::string& output, const Extension& extension) {
  return parse_diagnostics(output, LocationMapper("", {extension}));
}

TEST(NvccDiagnostics, TellTheColumnWherePreprocessingLeftTheLineAsItWas) {
  const auto diagnostics = parse(
      R"(cuda_sources[0](1): error: identifier "foo" is undefined
  __attribute__((global)) void k(float* x) { x[threadIdx.x] = foo(1); }
                                                              ^

cuda_sources[0](2): error: expression must be a modifiable lvalue
  int g() { const int q = 1; q = 2; return q; }
                             ^

2 errors detected in the compilation of "a.cu".
)",
      extension_of("__global__ void k(float* x) { x[threadIdx.x] = foo(1); }\n"
                   "int g() { const int q = 1; q = 2; return q; }\n"));
  ASSERT_EQ(diagnostics.size(), 2u);
  EXPECT_EQ(diagnostics[0].severity, "error");
  EXPECT_EQ(diagnostics[0].message, "identifier \"foo\" is undefined");
  EXPECT_EQ(diagnostics[0].location.line, 1);
  EXPECT_EQ(diagnostics[0].location.column, 0);
  EXPECT_EQ(diagnostics[1].location,
            (task::SourceLocation{"cuda_sources[0]", 2, 28,
                                  "int g() { const int q = 1; q = 2; return q; }"}));
}

TEST(GppDiagnostics, SuggestNoNameThatTheCandidateDoesNotSee) {
  const Extension extension = extension_of("int i = max_dim;\nint j = siz;\n");
  const auto diagnostics = parse(
      "cuda_sources[0]:1:9: error: 'max_dim' was not declared in this scope; did you mean "
      "'mc_at_dim'?\n"
      "cuda_sources[0]:2:9: error: 'siz' was not declared in this scope; did you mean 'size'?\n",
      extension);
  ASSERT_EQ(diagnostics.size(), 2u);
  EXPECT_EQ(diagnostics[0].message, "'max_dim' was not declared in this scope");
  EXPECT_THAT(diagnostics[1].message, HasSubstr("did you mean 'size'?"));
}

TEST(NvccDiagnostics, PutErrorsBeforeWarningsAndJoinLongMessages) {
  const auto diagnostics = parse(
      R"(cuda_sources[0](3): warning #177-D: variable "y" was declared but never referenced
   int y;
       ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

cuda_sources[0](6): error: no instance of function template "f" matches the argument list
            argument types are: (int, double)
          f(1, 2.0); f2(1);
          ^
cuda_sources[0](3): note #3327-D: candidate function template "f" failed deduction
  template <typename T> void f(T, T);
                             ^

)",
      extension_of("1\n2\n3\n4\n5\n        f(1, 2.0); f2(1);\n"));
  ASSERT_EQ(diagnostics.size(), 3u);
  EXPECT_EQ(diagnostics[0].message,
            "no instance of function template \"f\" matches the argument list argument types are: "
            "(int, double)");
  EXPECT_EQ(diagnostics[0].location.column, 9);
  EXPECT_EQ(diagnostics[1].severity, "warning");
  EXPECT_EQ(diagnostics[2].severity, "note");
}

TEST(NvccDiagnostics, LocateAnErrorInAForeignHeaderAtItsUseByTheCandidate) {
  const std::string output =
      R"(part.cuh(2): error: static assertion failed with "only "double""
    static_assert(sizeof(T) == 8, "only \"double\"");
    ^
          detected during instantiation of "int part(T) [with T=float]" at line 4 of cuda_sources[0]

1 error detected in the compilation of "h.cu".
)";
  const std::string source =
      "#include \"part.cuh\"\nint f() {\n  int y;\n  return part<float>(1);\n}";
  const auto foreign = parse(output, extension_of(source));
  ASSERT_EQ(foreign.size(), 1u);
  EXPECT_EQ(foreign[0].location,
            (task::SourceLocation{"cuda_sources[0]", 4, 0, "  return part<float>(1);"}));
  EXPECT_THAT(foreign[0].message, HasSubstr("; detected during instantiation of"));

  const auto own =
      parse(output, extension_of(source, {{"part.cuh", "template...\n  static...\n"}}));
  EXPECT_EQ(own[0].location.source, "part.cuh");
  EXPECT_EQ(own[0].location.line, 2);
}

constexpr char kUse[] =
    "#include <lib/part.h>\nint f() {\n  return part(1.0f);\n}\nint g() { return PART(3); }\n";

TEST(GccDiagnostics, LocateAnErrorInAForeignHeaderAtItsUseByTheCandidate) {
  const Extension extension = extension_of(kUse);
  const auto diagnostics = parse(
      R"(In file included from cuda_sources[0]:1:
cuda_sources[0]: In function 'int g()':
/opt/include/lib/part.h:4:17: error: 'part_of' was not declared in this scope
cuda_sources[0]:5:18: note: in expansion of macro 'PART'
/opt/include/lib/part.h: In instantiation of 'struct Part<float>':
/opt/include/lib/part.h:3:44:   required from 'int part(T) [with T = float]'
cuda_sources[0]:3:14:   required from here
/opt/include/lib/part.h:2:58: error: static assertion failed: only double
/opt/include/lib/part.h:2:58: note: the comparison reduces to '(4 == 8)'
)",
      extension);
  ASSERT_EQ(diagnostics.size(), 3u);
  EXPECT_EQ(diagnostics[0].location,
            (task::SourceLocation{"cuda_sources[0]", 5, 18, "int g() { return PART(3); }"}));
  EXPECT_EQ(diagnostics[1].location,
            (task::SourceLocation{"cuda_sources[0]", 3, 14, "  return part(1.0f);"}));
  EXPECT_EQ(diagnostics[1].message, "static assertion failed: only double (in lib/part.h:2)");
}

TEST(GccDiagnostics, ReportAnErrorInAHeaderThatTheCandidateOnlyIncludes) {
  const Extension extension = extension_of("int x\n#include <lib/part.h>\n");
  const auto diagnostics = parse(
      R"(In file included from cuda_sources[0]:2:
/opt/include/lib/part.h:2:1: error: expected initializer before 'template'
)",
      extension);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].message,
            "expected initializer before 'template' (in what cuda_sources[0]:2 includes)");
  EXPECT_EQ(diagnostics[0].location, (task::SourceLocation{"lib/part.h", 2, 1, ""}));
}

TEST(GccDiagnostics, NameTheTypeOfAFunctionThatCannotBeBound) {
  const Extension extension = extension_of("PYBIND11_MODULE(x, m) {\n  m.def(\"bad\", &bad);\n}\n");
  const auto diagnostics = parse(
      R"(In file included from /facade/include/mc_at/extension.h:42:
/facade/bind/mc_bind/bind.h: In instantiation of 'auto)"
      R"( mc_bind::Bound<F>::load_at(McShimObject* const*) [with long unsigned int kIndex =)"
      R"( 0; F = float* (*)(float*); McShimObject = void]':
/facade/bind/mc_bind/bind.h:206:38:   required from 'pybind11::module_&)"
      R"( pybind11::module_::def(const char*, F&&, const Extra& ...) [with F = float*)"
      R"( (*)(float*); Extra = {}]'
cuda_sources[0]:2:8:   required from here
/facade/bind/mc_bind/bind.h:138:60: error: incomplete type)"
      R"( 'mc_bind::Converter<float*, void>' used in nested name specifier
/facade/bind/mc_bind/bind.h:144:30: error: incomplete type)"
      R"( 'mc_bind::Converter<float*, void>' used in nested name specifier
)",
      extension);
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_THAT(diagnostics[0].message,
              HasSubstr("a function bound to Python cannot take or return 'float*': use torch::"));
  EXPECT_EQ(diagnostics[0].location,
            (task::SourceLocation{"cuda_sources[0]", 2, 8, "  m.def(\"bad\", &bad);"}));
}

struct Row {
  const char* output;
  task::Diagnostic wanted;
};

class OneLine : public ::testing::TestWithParam<Row> {};

TEST_P(OneLine, IsOneDiagnostic) {
  const auto diagnostics = parse(GetParam().output, extension_of("one\ntwo\nthree\n"));
  ASSERT_EQ(diagnostics.size(), 1u);
  EXPECT_EQ(diagnostics[0].severity, GetParam().wanted.severity);
  EXPECT_EQ(diagnostics[0].message, GetParam().wanted.message);
  EXPECT_EQ(diagnostics[0].location, GetParam().wanted.location);
}

INSTANTIATE_TEST_SUITE_P(
    Outputs, OneLine,
    ::testing::Values(
        Row{"cuda_sources[0]:1:10: fatal error: nope.h: No such file or directory\n"
            "compilation terminated.\n",
            {"error", "nope.h: No such file or directory", {"cuda_sources[0]", 1, 10, "one"}}},
        Row{"cuda_sources[0]:3:31: warning: missing terminating \" character\n",
            {"warning", "missing terminating \" character", {"cuda_sources[0]", 3, 31, "three"}}},
        Row{"cuda_sources[0]:2: error: unterminated #if\n",
            {"error", "unterminated #if", {"cuda_sources[0]", 2, 0, "two"}}},
        Row{"cuda_sources[0]: Assembler messages:\n"
            "cuda_sources[0]:2: Error: no such instruction: `bogus instr'\n",
            {"error", "no such instruction: `bogus instr'", {"cuda_sources[0]", 2, 0, "two"}}},
        Row{"/tmp/tmpxft_00001_00000000-6_c.cudafe1.cpp:7:3: error: odd\n", {"error", "odd", {}}},
        Row{"cuda_sources[0](3): error: calling a __host__ function(\"plain()\") from a __global__ "
            "function(\"k\") is not allowed\n\n",
            {"error",
             "calling a __host__ function(\"plain()\") from a __global__ function(\"k\") is not "
             "allowed",
             {"cuda_sources[0]", 3, 0, "three"}}},
        Row{"ptxas error   : Entry function '_Z3bigPf' uses too much shared data (0x61a80 bytes, "
            "0x38c00 max)\n"
            "ptxas info    : 0 bytes gmem\n"
            "ptxas info    : Used 10 registers, used 1 barriers, 400000 bytes smem\n",
            {"error",
             "ptxas: Entry function 'big' uses too much shared data (0x61a80 bytes, "
             "0x38c00 max)",
             {}}},
        Row{"ptxas /tmp/tmpxft_000014c5_00000000-6_c.ptx, line 54; error   : Unknown modifier "
            "'.nope'\n"
            "ptxas fatal   : Ptx assembly aborted due to errors\n",
            {"error", "ptxas: Unknown modifier '.nope'", {}}},
        Row{"nvcc fatal   : Unknown option '--bogus'\n",
            {"error", "nvcc: Unknown option '--bogus'", {}}},
        Row{"/usr/bin/ld: /tmp/ccFxTvrm.o: in function `h2()':\n"
            "/tmp/build/cuda_sources[0]:2: undefined reference to `g()'\n"
            "collect2: error: ld returned 1 exit status\n",
            {"error", "undefined reference to `g()'", {"cuda_sources[0]", 2, 0, "two"}}},
        Row{"/usr/bin/ld: cannot find -lnothing: No such file or directory\n",
            {"error", "cannot find -lnothing: No such file or directory", {}}},
        Row{"nvcc error   : 'cudafe++' died due to signal 11 (Invalid memory reference)\n",
            {"error", "nvcc: 'cudafe++' died due to signal 11 (Invalid memory reference)", {}}}));

TEST(NvccDiagnostics, LeaveOutErrorsOfTheMemoryLimit) {
  const Extension extension = extension_of("");
  EXPECT_TRUE(
      parse("nvcc error   : 'cicc' died due to signal 9 (Kill signal)\n", extension).empty());
  EXPECT_TRUE(parse("/usr/include/c++/12/bits/stl_iterator_base_funcs.h(189): catastrophic error: "
                    "out of memory\n        if (__builtin_constant_p(__n) && __n == 1)\n"
                    "            ^\n\n1 catastrophic error detected in the compilation of "
                    "\"d.cu\".\nCompilation terminated.\n",
                    extension)
                  .empty());
}

TEST(NvccDiagnostics, AreBoundedInNumber) {
  std::string output;
  for (int i = 1; i < 1000; ++i) output += "a(" + std::to_string(i) + "): error: e\n\n";
  EXPECT_EQ(parse(output, extension_of("")).size(), kDiagnosticsMax);
}

TEST(NvccDiagnostics, AcceptAnyText) {
  constexpr std::string_view kPieces[] = {"cuda_sources[0]",
                                          "(",
                                          ")",
                                          "1",
                                          "99999999999999",
                                          ": ",
                                          "error",
                                          "warning #20-D",
                                          "\n",
                                          "  ",
                                          "^",
                                          "ptxas info    : ",
                                          "Compiling entry function '",
                                          "_Z1kPf",
                                          "'",
                                          " at line ",
                                          " of ",
                                          "; ",
                                          "nvcc fatal   : ",
                                          "Used 1 registers, ",
                                          "fatal error: ",
                                          "\xff"};
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::string text;
    for (int i = 0; i < 40; ++i) text += kPieces[random() % std::size(kPieces)];
    SCOPED_TRACE(seed);
    check_nvcc_output(text);
  }
}

TEST(KernelResources, AreReadKernelByKernel) {
  const auto kernels = parse_kernel_resources(
      R"(ptxas info    : 28 bytes gmem, 16 bytes cmem[3]
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function '_Z4axpyIdEvPT_PKS0_S0_i' for 'sm_90a'
ptxas info    : Function properties for _Z4axpyIdEvPT_PKS0_S0_i
    0 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 10 registers, 1024 bytes smem, 400 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 7.408 ms
ptxas info    : Function properties for _Z6helperf
    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'plain' for 'sm_90a'
ptxas info    : Function properties for plain
    256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 256 bytes cumulative stack size
)");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0],
            (KernelResources{"_Z4axpyIdEvPT_PKS0_S0_i", "axpy<double>", 10, 4, 12, 0, 1024, 408}));
  EXPECT_EQ(kernels[1], (KernelResources{"plain", "plain", 32, 0, 0, 256, 0, 0}));
}

// The demangled name has more bytes than the memory (core/demangle.h).
TEST(KernelResources, AHostileNameCostsNothing) {
  std::string kernel = "_Z1kP1PIiiE";
  for (const char* last : {"S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "S8_", "S9_"}) {
    kernel += std::string("S_I") + last + last + "E";
  }
  for (char last = 'A'; last <= 'Z'; ++last) {
    kernel += std::string("S_IS") + last + "_S" + last + "_E";
  }
  const auto kernels = parse_kernel_resources("ptxas info    : Compiling entry function '" +
                                              kernel + "' for 'sm_90a'\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].kernel, kernel);
  EXPECT_EQ(kernels[0].name, "k");
}

}  // namespace
}  // namespace mc::compile
