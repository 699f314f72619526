// SPDX-License-Identifier: Apache-2.0
#include "legality/symbols.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "legality/static_rules.h"

namespace mc::legality {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> broken_rules(const std::vector<std::string>& symbols) {
  static const Policy kPolicy =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "musacoder").value();
  std::vector<std::string> rules;
  for (const task::RuleFinding& finding : check_symbols(kPolicy, symbols, {})) {
    rules.push_back(finding.rule);
  }
  return rules;
}

TEST(CheckSymbols, FindsOperatorsLibrariesAndSystemCalls) {
  EXPECT_THAT(broken_rules({"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"}),
              ElementsAre("link.torch_compute"));
  EXPECT_THAT(
      broken_rules({"cublasSgemm_v2", "dlopen@GLIBC_2.34", "fork", "execve"}),
      ElementsAre("link.vendor_library", "link.dynamic_loading", "link.process", "link.process"));
  EXPECT_THAT(broken_rules({"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_"
                            "deleteIS1_EEPFvvE"}),
              ElementsAre("link.process"));
}

TEST(CheckSymbols, AllowsPybind11sOwnImportWhereTheSourcesImportNothing) {
  const Policy policy =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "kernelbench").value();
  const auto rules = [&](const char* source) {
    return check_symbols(policy, {"PyImport_ImportModule"}, {{"cuda_sources[0]", source}}).size();
  };
  EXPECT_EQ(rules("void f(std::map<int, int> m);  // import"), 0U);
  EXPECT_EQ(rules("using M = py::module_; auto os = M::import(name);"), 1U);
  EXPECT_EQ(rules("#define PASTE(a, b) a##b\nPASTE(PyImp, ort_ImportModule)(name);"), 1U);
  EXPECT_EQ(check_symbols(policy, {"PyImport_ImportModule"}, {}).size(), 1U);
}

TEST(CheckSymbols, FindsCallsThatBypassTheDispatcherOrReachTheVerifier) {
  // PyTorch's stable interface has functions that query and allocate, and some that compute.
  EXPECT_THAT(broken_rules({"aoti_torch_get_numel", "aoti_torch_library_impl",
                            "aoti_torch_aten_new_empty", "aoti_torch_call_dispatcher"}),
              ElementsAre());
  EXPECT_THAT(broken_rules({"aoti_torch_aten_amax", "aoti_torch__mm_plus_mm_out"}),
              ElementsAre("link.torch_compute", "link.torch_compute"));
  // Reading PyTorch's settings is allowed.
  EXPECT_THAT(broken_rules({"_ZNK2at7Context23deterministicAlgorithmsEv"}), ElementsAre());
  EXPECT_THAT(broken_rules({"_ZN2at7Context17setBenchmarkCuDNNEb"}),
              ElementsAre("link.environment"));
  EXPECT_THAT(broken_rules({"aoti_torch_cpu_mm_out", "_ZN2at3cpu8silu_outERNS_6TensorERKS1_"}),
              ElementsAre("link.torch_compute", "link.torch_compute"));
  EXPECT_THAT(broken_rules({"mc_device_end_call", "mc_init_pause", "_r_debug@GLIBC_2.2.5"}),
              ElementsAre("link.verifier", "link.verifier", "link.dynamic_loading"));
  EXPECT_THAT(broken_rules({"mc_shim_module_set", "mc_at_op_empty_memory_format"}), IsEmpty());
}

TEST(CheckSymbols, NamesAnOperatorAsItsAuthorWroteIt) {
  static const Policy kPolicy =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "musacoder").value();
  const std::vector<NativeSource> sources = {
      {"cuda_sources[0]", "// sum(x)\nint sum;\nauto y = x.sum(1);\nauto z = torch::relu(y);\n"}};
  const auto findings = check_symbols(
      kPolicy,
      {"_ZN2at4_ops15sum_dim_IntList4callERKNS_6TensorE", "_ZN2at4_ops4relu4callERKNS_6TensorE",
       "_ZN2at4_ops10add_Tensor4callERKNS_6TensorE"},
      sources);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].location, (task::SourceLocation{"cuda_sources[0]", 3, 12, ""}));
  EXPECT_THAT(findings[0].message, ::testing::StartsWith("torch::sum: "));
  EXPECT_EQ(findings[1].location.line, 4);
  EXPECT_THAT(findings[2].message, ::testing::HasSubstr("a + b"));
  EXPECT_EQ(findings[2].location, task::SourceLocation{});
}

TEST(CheckSymbols, AllowsTheOperatorsThatMayRunAndOrdinaryLibraries) {
  EXPECT_THAT(
      broken_rules({"_ZN2at4_ops19empty_memory_format4callEN3c108ArrayRefINS2_6SymIntEEE",
                    "_ZN2at4_ops4view4callERKNS_6TensorEN3c108ArrayRefINS5_6SymIntEEE", "memcpy",
                    "expf", "_Znwm", "cublas_like", "__tsan_read4", "cudaMemcpyAsync"}),
      IsEmpty());
}

TEST(CheckSymbols, AllowsAnOperatorInAllItsOverloadsButNotItsNamesakes) {
  const auto entry = [](const std::string& name) {
    return "_ZN2at4_ops" + std::to_string(name.size()) + name + "4callERKNS_6TensorE";
  };
  for (const char* name : {"zeros_like", "split_Tensor", "fill__Scalar", "t", "select_int",
                           "randint_low_generator", "set__source_Storage_storage_offset", "numpy_T",
                           "to_dtype_layout", "arange_start_step", "view_as"}) {
    EXPECT_THAT(broken_rules({entry(name)}), IsEmpty()) << name;
  }
  for (const char* name : {"to_dense", "view_copy", "slice_scatter", "select_backward", "t_copy",
                           "normal_float_Tensor", "index_Tensor", "cat", "expand_copy_out"}) {
    EXPECT_THAT(broken_rules({entry(name)}), ElementsAre("link.torch_compute")) << name;
  }
  EXPECT_THAT(broken_rules({"_ZN2at4_ops4view10redispatchERKNS_6TensorE"}),
              ElementsAre("link.torch_compute"));
}

TEST(CheckSymbols, TreatsTheFacadesEntriesLikePyTorchs) {
  EXPECT_THAT(broken_rules({"mc_at_op_bmm", "mc_at_op_sum_dim_IntList", "mc_at_op_add_Tensor"}),
              ElementsAre("link.torch_compute", "link.torch_compute", "link.torch_compute"));
  EXPECT_THAT(broken_rules({"mc_at_op_empty_like", "mc_at_op_view_dtype", "mc_at_op_contiguous",
                            "mc_at_data", "mc_at_numel"}),
              IsEmpty());
  const auto findings = check_symbols(
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "musacoder").value(),
      {"mc_at_op_sum_dim_IntList"}, {{"cuda_sources[0]", "auto y = x.sum(1);\n"}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].location.line, 1);
}

TEST(CheckSymbols, ChecksTheNameOfATemplateAndNotItsReturnType) {
  EXPECT_THAT(broken_rules({"_ZN2at6native10fused_modeIN3c104HalfEEEvRKNS_10TensorBaseES6_S6_ll"}),
              ElementsAre("link.torch_compute"));
  EXPECT_THAT(
      broken_rules({"_ZSt16__do_uninit_copyIPKN5torch3jit6mobile13SGDParamGroupEPS3_ET0_T_S8_"
                    "S7_"}),
      IsEmpty());
}

// The demangled names have more bytes than the memory, or take years to compute.
TEST(CheckSymbols, AHostileNameCostsNothing) {
  std::string doubling = "_ZN2at6native1fE1PIiiE";
  for (char last = '0'; last <= '9'; ++last) {
    doubling += std::string("S_IS") + last + "_S" + last + "_E";
  }
  for (char last = 'A'; last <= 'Z'; ++last) {
    doubling += std::string("S_IS") + last + "_S" + last + "_E";
  }
  std::string backtracking = "_ZN2at6native";
  for (int i = 0; i < 100; ++i) backtracking += "cvT_I";
  EXPECT_THAT(broken_rules({doubling, backtracking + "i" + std::string(101, 'E') + "v"}),
              ElementsAre("link.torch_compute", "link.torch_compute"));
}

TEST(CheckSymbols, ToleratesNamesThatDoNotDemangle) {
  EXPECT_THAT(broken_rules({"_Z", "_Znonsense", "", "@", std::string(10000, 'a')}), IsEmpty());
}

struct Row {
  std::string text;
  std::string pattern;
  bool matches;
};

class Pattern : public ::testing::TestWithParam<Row> {};

TEST_P(Pattern, MatchesAllOfTheText) {
  EXPECT_EQ(matches_pattern(GetParam().text, GetParam().pattern), GetParam().matches)
      << GetParam().text << " " << GetParam().pattern;
}

INSTANTIATE_TEST_SUITE_P(All, Pattern,
                         ::testing::Values(Row{"fork", "fork", true}, Row{"forks", "fork", false},
                                           Row{"fork", "forks", false}, Row{"", "", true},
                                           Row{"", "*", true}, Row{"abc", "a*c", true},
                                           Row{"abcbc", "a*bc", true}, Row{"abcb", "a*bc", false},
                                           Row{"aXbXc", "a*b*c", true},
                                           Row{"cublasSgemm", "cublas[A-Z]*", true},
                                           Row{"cublas_x", "cublas[A-Z]*", false},
                                           Row{"x", "**", true}, Row{"[", "[A-Z]", false}));

}  // namespace
}  // namespace mc::legality
