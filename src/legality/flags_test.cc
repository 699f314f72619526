// SPDX-License-Identifier: Apache-2.0
#include "legality/flags.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "legality/static_rules.h"

namespace mc::legality {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

const Policy& policy() {
  static const Policy kPolicy =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "musacoder").value();
  return kPolicy;
}

CheckedFlags check_cuda(const Strings& flags) { return check_flags(policy(), {{}, flags, {}}); }

struct Row {
  Strings given;
  Strings passed;
};

class AllowedFlags : public ::testing::TestWithParam<Row> {};

TEST_P(AllowedFlags, PassesOrIsDropped) {
  const CheckedFlags checked = check_cuda(GetParam().given);
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.findings[0].message;
  EXPECT_EQ(checked.passed.cuda, GetParam().passed);
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, AllowedFlags,
    ::testing::Values(
        Row{{}, {}}, Row{{""}, {}}, Row{{"-O3"}, {"-O3"}},
        Row{{"-O3", "--use_fast_math"}, {"-O3", "--use_fast_math"}},
        Row{{"-O3 -use_fast_math\n-lineinfo"}, {"-O3", "-use_fast_math", "-lineinfo"}},
        Row{{"--expt-relaxed-constexpr", "--expt-extended-lambda", "--extended-lambda"},
            {"--expt-relaxed-constexpr", "--expt-extended-lambda", "--extended-lambda"}},
        Row{{"-std=c++14"}, {}}, Row{{"-std=c++17"}, {"-std=c++17"}},
        Row{{"-std", "c++20"}, {"-std=c++20"}},
        Row{{"-gencode", "arch=compute_80,code=sm_80", "-arch=sm_90"}, {}},
        Row{{"-gencode=arch=compute_80,code=sm_80"}, {}}, Row{{"-arch", "sm_86", "-O2"}, {"-O2"}},
        Row{{"-Xptxas=-v"}, {}}, Row{{"-Xptxas", "-O3,-v,-dlcm=ca"}, {"-Xptxas=-O3,-dlcm=ca"}},
        Row{{"--ptxas-options=-v"}, {}}, Row{{"-maxrregcount=64"}, {"-maxrregcount=64"}},
        Row{{"--maxrregcount", "64"}, {"--maxrregcount=64"}},
        Row{{"-ftz=true", "-prec-div=false", "-prec-sqrt=false", "--fmad=true"},
            {"-ftz=true", "-prec-div=false", "-prec-sqrt=false", "--fmad=true"}},
        Row{{"-Xcompiler", "-fPIC"}, {"-Xcompiler=-fPIC"}},
        Row{{"-Xcompiler '-O3 -march=native'"}, {"-Xcompiler=-O3"}},
        Row{{"--compiler-options", "'-Wall'"}, {"--compiler-options=-Wall"}},
        Row{{"-DTILE=16", "-D", "NDEBUG", "-U__CUDA_NO_HALF_OPERATORS__"},
            {"-DTILE=16", "-DNDEBUG", "-U__CUDA_NO_HALF_OPERATORS__"}},
        Row{{"-Xptxas", "-maxrregcount=64"}, {"-Xptxas=-maxrregcount=64"}},
        Row{{"-Xptxas", "-maxrregcount,64,-v"}, {"-Xptxas=-maxrregcount=64"}},
        Row{{"-Xptxas --maxrregcount=64,-O3"}, {"-Xptxas=--maxrregcount=64,-O3"}},
        Row{{"-Xfatbin", "-compress-all"}, {}},
        Row{{"-I/home", "-I", ".", "-isystem /opt", "-L/opt", "-lcublas", "-l cudnn"}, {}},
        Row{{"-fopenmp", "-Xcompiler", "-fopenmp"}, {}},
        Row{{"-I/usr/local/cuda/include", "-rdc=false", "--threads=4", "-t", "2"}, {}}));

class ForbiddenFlag : public ::testing::TestWithParam<std::string> {};

TEST_P(ForbiddenFlag, IsAFindingThatQuotesTheFlag) {
  const CheckedFlags checked = check_cuda({"-O3", GetParam()});
  ASSERT_EQ(checked.findings.size(), 1u);
  EXPECT_EQ(checked.findings[0].rule, "native.flag");
  EXPECT_THAT(checked.findings[0].message, HasSubstr(" in extra_cuda_cflags: "));
  EXPECT_THAT(checked.passed.cuda, ElementsAre("-O3"));
}

INSTANTIATE_TEST_SUITE_P(Cuda, ForbiddenFlag,
                         ::testing::Values("-include x.h", "-lmine", "-l mine", "-ox", "--run",
                                           "-Xcompiler=-fplugin=x.so", "-Xcompiler=@file",
                                           "-rdc=true", "--options-file=x", "-optf", "@flags",
                                           "x.cu", "-Xptxas=--maxntid", "-dc", "-ptx",
                                           "--keep-dir=/", "-Xcompiler=-B/opt", "-Xlinker -rpath",
                                           "$(id)"));

TEST(CheckFlags, HaveSeparateListsForCxxAndTheLinker) {
  const CheckedFlags checked = check_flags(
      policy(),
      {{"-O3", "-Wall", "-fplugin=x.so"}, {}, {"", "-lcudart", "-lcublas", "-lmine", "-L/opt"}});
  EXPECT_THAT(checked.passed.cxx, ElementsAre("-O3", "-Wall"));
  EXPECT_THAT(checked.passed.link, IsEmpty());
  ASSERT_EQ(checked.findings.size(), 2u);
  EXPECT_THAT(checked.findings[0].message, HasSubstr("-fplugin=x.so in extra_cflags: "));
  EXPECT_THAT(checked.findings[1].message, HasSubstr("-lmine in extra_ldflags: "));
}

TEST(CheckFlags, LinkAVendorLibraryWhereThePolicyAllowsIt) {
  const Policy kernelbench =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "kernelbench").value();
  EXPECT_THAT(check_flags(kernelbench, {{}, {}, {"-lcublas", "-lm"}}).passed.link,
              ElementsAre("-lcublas"));
}

TEST(CheckFlags, CheckDefinitionsWithTheRulesOnSources) {
  const CheckedFlags checked = check_cuda({"-DOP=torch::matmul", "-D'RUN=system(\"id\")'"});
  ASSERT_EQ(checked.findings.size(), 2u);
  EXPECT_EQ(checked.findings[0].rule, "cpp.tensor_compute");
  EXPECT_EQ(checked.findings[1].rule, "cpp.process");
  EXPECT_THAT(checked.passed.cuda, IsEmpty());
}

TEST(CheckFlags, AreBoundedInNumberAndLength) {
  const CheckedFlags checked = check_cuda(Strings(100, "-" + std::string(200, 'x')));
  EXPECT_EQ(checked.findings.size(), kFindingsMax);
  EXPECT_LT(checked.findings[0].message.size(), 300u);
  EXPECT_EQ(check_cuda({"-DX=" + std::string(kFlagBytesMax, 'x')}).findings.size(), 1u);
}

}  // namespace
}  // namespace mc::legality
