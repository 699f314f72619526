// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/file.h"
#include "musify/port.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kRoot = MC_SOURCE_DIR;

const MusaDialect& dialect() {
  static const MusaDialect kDialect = MusaDialect::create(kRoot / "data/musify").value();
  return kDialect;
}

std::string ported(const std::string& module) {
  const auto port = dialect().port(module, "mp_31");
  const auto* text = std::get_if<std::string>(&port);
  if (text == nullptr) {
    const auto& outcome = std::get<task::Outcome>(port);
    const auto* failed = std::get_if<task::CompileFailed>(&outcome);
    ADD_FAILURE() << (failed ? failed->diagnostics.at(0).message : task::outcome_name(outcome));
  }
  return text == nullptr ? "" : *text;
}

// The first error of a module that the port rejects.
task::Diagnostic refused(const std::string& module) {
  const auto port = dialect().port(module, "mp_31");
  const auto* outcome = std::get_if<task::Outcome>(&port);
  const auto* failed = outcome ? std::get_if<task::CompileFailed>(outcome) : nullptr;
  return failed == nullptr ? task::Diagnostic{} : failed->diagnostics.at(0);
}

// A native source whose second line is `line`, and its extension.
std::vector<compile::Extension> extensions_with(const std::string& line) {
  compile::Extension extension;
  extension.cuda_sources = {"#include <musa_runtime.h>\n" + line + "\n"};
  return {extension};
}

// A module that has this source in its lines 2 to 3.
std::string module_with(const std::string& line) {
  return "S = r'''\n" + extensions_with(line)[0].cuda_sources[0] + "'''\n";
}

std::optional<task::Outcome> outcome_of(std::vector<compile::Extension>& extensions,
                                        const std::string& module,
                                        const std::string& architecture = "mp_31") {
  const compile::LocationMapper mapper(module, extensions);
  dialect().undo_port(extensions, module);
  return dialect().port_sources(extensions, module, mapper, architecture);
}

// The first error of a native source that the port rejects.
task::Diagnostic refused_source(const std::string& line,
                                const std::string& architecture = "mp_31") {
  std::vector<compile::Extension> extensions = extensions_with(line);
  const auto outcome = outcome_of(extensions, module_with(line), architecture);
  const auto* failed = outcome ? std::get_if<task::CompileFailed>(&*outcome) : nullptr;
  return failed == nullptr ? task::Diagnostic{} : failed->diagnostics.at(0);
}

std::string ported_source(const std::string& line) {
  std::vector<compile::Extension> extensions = extensions_with(line);
  EXPECT_EQ(outcome_of(extensions, module_with(line)), std::nullopt) << line;
  return extensions[0].cuda_sources[0];
}

struct Word {
  std::string module;
  std::string word;
  int line;
};

void expect_error(const task::Diagnostic& error, const std::string& word, int line) {
  EXPECT_THAT(error.message, HasSubstr('"' + word + '"'));
  EXPECT_THAT(error.message, HasSubstr("(dialect.cuda)"));
  EXPECT_EQ(error.location.source, "candidate");
  EXPECT_EQ(error.location.line, line);
  EXPECT_THAT(error.location.excerpt, HasSubstr(word));
}

class Unported : public ::testing::TestWithParam<Word> {};

TEST_P(Unported, IsRefusedWithItsWordAndPlace) {
  expect_error(refused(GetParam().module), GetParam().word, GetParam().line);
}

struct Line {
  const char* line;
  const char* word;
};

class UnportedSource : public ::testing::TestWithParam<Line> {};

TEST_P(UnportedSource, IsRefusedWithItsWordAndPlace) {
  expect_error(refused_source(GetParam().line), GetParam().word, 3);
}

INSTANTIATE_TEST_SUITE_P(
    All, UnportedSource,
    ::testing::Values(Line{"void f() { cudaMalloc(&p, 4); }", "cudaMalloc"},
                      Line{"#include <cuda_runtime.h>", "cuda_runtime.h"},
                      Line{"#include <cuda_fp16.h>", "cuda_fp16.h"},
                      Line{"__nv_bfloat16 x;", "__nv_bfloat16"},
                      Line{"auto s = at::cuda::getCurrentCUDAStream();", "cuda"},
                      Line{"c10::cuda::CUDAGuard guard(d);", "cuda"},
                      Line{"C10_CUDA_KERNEL_LAUNCH_CHECK();", "C10_CUDA_KERNEL_LAUNCH_CHECK"},
                      Line{"TORCH_CHECK(x.is_cuda());", "is_cuda"},
                      Line{"torch::zeros({1}, torch::kCUDA);", "kCUDA"},
                      Line{"cudaStream_t s = 0;", "cudaStream_t"},
                      Line{"cublasHandle_t h;", "cublasHandle_t"},
                      Line{"curandState s;", "curandState"},
                      Line{"#ifdef __CUDA_ARCH__\n#endif", "__CUDA_ARCH__"}));

INSTANTIATE_TEST_SUITE_P(
    Python, Unported,
    ::testing::Values(Word{"x = x.cuda()\n", "cuda", 1},
                      Word{"import torch\nx = torch.ones(1, device='cuda')\n", "cuda", 2},
                      Word{"import torch\nx = x.to(\"cuda:0\")\n", "cuda", 2},
                      Word{"assert getattr(x, 'is_cuda', False)\n", "is_cuda", 1},
                      Word{"f = attrgetter('cuda.synchronize')\n", "cuda.synchronize", 1},
                      Word{"import torch\ntorch.cuda.synchronize()\n", "cuda", 2},
                      Word{"import torch\nfrom torch.utils.cpp_extension import load_inline\n",
                           "torch.utils.cpp_extension", 2},
                      Word{"import torch as t\nt.cuda.synchronize()\n", "cuda", 2},
                      Word{"from torch import cuda\n", "cuda", 1},
                      Word{"x = f'{torch.cuda.current_device()}'\n", "cuda", 1},
                      Word{"f(**{'extra_cuda_cflags': []})\n", "extra_cuda_cflags", 1},
                      Word{"K = {}\nK['no_implicit_headers'] = 1\n", "no_implicit_headers", 2},
                      Word{"m = load_inline('m', musa_sources=s, extra_cuda_cflags=['-O3'])\n",
                           "extra_cuda_cflags", 1},
                      Word{"m = load_inline('m', cuda_sources=s)\n", "cuda_sources", 1},
                      Word{"m = load_inline('m', musa_sources=s, no_implicit_headers=True)\n",
                           "no_implicit_headers=True", 1}));

TEST(Dialect, SuggestsTheMusaWordForACudaWord) {
  EXPECT_EQ(refused_source("cudaStream_t s = 0;").message,
            "\"cudaStream_t\" is of CUDA and does not exist on MUSA: write \"musaStream_t\" "
            "(dialect.cuda)");
  EXPECT_EQ(refused("f(cpp_sources=s, no_implicit_headers=True)\n").message,
            "\"no_implicit_headers=True\" is of CUDA and has no counterpart on MUSA: leave it out "
            "(dialect.cuda)");
  EXPECT_EQ(refused("from torch import cuda\n").message,
            "\"cuda\" is of CUDA and does not exist on MUSA: write \"musa\" (dialect.cuda)");
}

TEST(Dialect, RefusesWhatHasNoCounterpart) {
  EXPECT_THAT(refused_source("asm volatile(\"nop;\");").message, HasSubstr("inline PTX"));
}

TEST(Dialect, RejectsCommentsThatExcludeLinesFromThePort) {
  EXPECT_EQ(refused("x = 1\nx.cuda()  # MUSIFY_EXCL_LINE\n").location.line, 2);
  EXPECT_EQ(refused_source("cudaFree(p);  // MUSIFY_EXCL_LINE").location.line, 3);
}

TEST(Dialect, HasNoPortForAnUnknownNameOfMusa) {
  const std::string line = "__musa_shfl_xor_sync_i32(1);";
  std::vector<compile::Extension> extensions = extensions_with(line);
  const auto outcome = outcome_of(extensions, module_with(line));
  const auto& unsupported = std::get<task::Unsupported>(outcome.value());
  EXPECT_THAT(unsupported.constructs.at(0).message, HasSubstr("\"__musa_shfl_xor_sync_i32\""));
  EXPECT_EQ(unsupported.constructs.at(0).location.line, 3);
}

TEST(Dialect, KeepsNamesThatMusaHas) {
  ported_source(
      "#include <cub/cub.cuh>\n#include <thrust/sort.h>\nhalf h; __half2 g;\n"
      "TORCH_CUDA_CPP_API void f(); // cudaMalloc of CUDA\n"
      "int cudaCores = 1; TORCH_CHECK(cudaCores, \"no cuda tensor\");");
}

TEST(Dialect, DoesNotPortTheSourcesInAModule) {
  const std::string module = "S = r'''#include <musa.h>\nmusaFree(p);'''\n";
  EXPECT_EQ(ported(module), module);
}

TEST(Dialect, PortsASourceThatAModuleAssembled) {
  EXPECT_THAT(ported_source("musaStream_t s;"), HasSubstr("cudaStream_t s;"));
  // The port of the module turned the "musa" that it inserts into "cuda".
  std::vector<compile::Extension> extensions = extensions_with("at::cuda::f();");
  EXPECT_EQ(outcome_of(extensions, "S = T.replace('@', 'musa')\n"), std::nullopt);
  extensions = extensions_with("at::cuda::f();");
  EXPECT_NE(outcome_of(extensions, "S = 'at::cu' 'da::f(); // cuda'\n"), std::nullopt);
}

TEST(Dialect, ReplacesCudaWordsInLiteralsByStandIns) {
  EXPECT_EQ(ported("ok = x.device.type != 'cuda' and d in {'cuda': 1, 'musa:0': 2}\n"),
            "ok = x.device.type != 'foreigncuda' and d in {'foreigncuda': 1, 'cuda:0': 2}\n");
  EXPECT_EQ(ported("s = f'{a[\"b\"]} cudaMalloc CUDA_CHECK {x!r}' '\\ncuda'\n"),
            "s = f'{a[\"b\"]} foreigncudaMalloc FOREIGNCUDA_CHECK {x!r}' '\\nforeigncuda'\n");
  EXPECT_EQ(ported("e = m.load_inline(functions=['cuda'])\ne.cuda(x)\n"),
            "e = m.load_inline(functions=['foreigncuda'])\ne.cuda(x)\n");
  // Words that are not CUDA words, flags, and the names of functions that the module calls.
  const std::string module =
      "F = ['swish_cuda', 'cuda_swish', 'cudaSwish', '--cudaX']\next.cudaSwish(x)\n";
  EXPECT_EQ(ported(module), module);
}

TEST(Dialect, ReconstructsTheSourceThatTheOriginalModuleAssembles) {
  std::vector<compile::Extension> extensions = extensions_with("at::cuda::f(); CUDA_g();");
  extensions[0].functions = {{"foreigncuda", "a foreigncuda function"}};
  extensions[0].extra_cuda_cflags = {"-DX=foreigncudaFree"};
  dialect().undo_port(extensions, "B = 'musa'\n");
  EXPECT_THAT(extensions[0].cuda_sources[0], HasSubstr("at::musa::f(); MUSA_g();"));
  EXPECT_EQ(extensions[0].functions[0].first, "cuda");
  EXPECT_EQ(extensions[0].extra_cuda_cflags[0], "-DX=cudaFree");
  extensions = extensions_with("at::foreigncuda::f(); FOREIGNCUDA_g(); is_cuda; X_cuda; cudaOwn;");
  dialect().undo_port(extensions, "B = 'musa'\next.cudaOwn()\n");
  EXPECT_THAT(extensions[0].cuda_sources[0],
              HasSubstr("at::cuda::f(); CUDA_g(); is_cuda; X_cuda; cudaOwn;"));
}

TEST(Dialect, KnowsThatNoDeviceOfCudaIsAvailable) {
  EXPECT_EQ(ported("if a and torch.cuda.is_available():\n  pass\n"),
            "if a and False:\n  raise NameError\n");
  EXPECT_THAT(refused("torch.cuda.is_available\n").message, HasSubstr("\"cuda\""));
}

TEST(Dialect, FollowsMembersOfThePackage) {
  EXPECT_EQ(ported("import torch_musa as tm\nU = tm.utils\nv = tm.__version__\n"),
            "import torch.cuda as tm\nU = torch.utils\nv = torch.__version__\n");
  EXPECT_EQ(ported("from torch_musa import utils as U\nf = U.musa_extension.load_inline\n"),
            "from torch import utils as U\nf = U.cpp_extension.load_inline\n");
  EXPECT_EQ(ported("with torch.backends.mudnn.flags(): g = torch.musa.MUSAGraph()\n"),
            "with torch.backends.cudnn.flags(): g = torch.cuda.CUDAGraph()\n");
}

TEST(Dialect, AllowsCudaWordsInStringsThatAreData) {
  EXPECT_THAT(ported_source("TORCH_CHECK(d.str() != \"cuda:0\", \"no cuda\", \"cuda\");"),
              HasSubstr("(d.str() != \"foreigncuda:0\", \"no foreigncuda\", \"foreigncuda\")"));
  EXPECT_THAT(ported_source("m.def(\"cuda\", &f, \"for CUDA\");"),
              HasSubstr("(\"cuda\", &f, \"for FOREIGNCUDA\")"));
  EXPECT_THAT(refused_source("torch::Device d(\"cuda\");").message, HasSubstr("\"cuda\""));
}

TEST(Dialect, LeavesOutBranchesThatNoCompilerOfMusaReads) {
  EXPECT_THAT(ported_source("#if 0\ncudaFree(p);\n#endif"), HasSubstr("#if 0\n            \n#end"));
  ported_source(
      "#if defined(__MUSACC__) || X\nint i;\n#elif defined(__CUDACC__)\n"
      "#ifdef __NVCC__\n#include <cuda.h>\n#endif\n#else\ncudaFree(p);\n#endif");
  ported_source("#ifndef __MUSA__\ncudaFree(p);\n#elif !0 && !(0)\n#else\ncudaFree(p);\n#endif");
  for (const char* line : {"#if X\n#else\ncudaFree(p);\n#endif", "#if 1\ncudaFree(p);\n#endif",
                           "#undef __MUSA__\n#ifndef __MUSA__\ncudaFree(p);\n#endif",
                           "#if 0\n#endif\ncudaFree(p);", "#if 0 || X\ncudaFree(p);\n#endif"}) {
    EXPECT_THAT(refused_source(line).message, HasSubstr("\"cudaFree\"")) << line;
  }
}

TEST(Dialect, LeavesOutBranchesForAnotherArchitecture) {
  const std::string branch = "#if defined(__MUSA_ARCH__) && __MUSA_ARCH__ == 310\ncudaFree(p);\n";
  EXPECT_EQ(refused_source(branch + "#endif", "mp_22").message, "");
  EXPECT_THAT(refused_source(branch + "#endif", "mp_31").message, HasSubstr("\"cudaFree\""));
  for (const char* line : {"#if __MUSA_ARCH__ > 220 && __MUSA_ARCH__ <= 310\ncudaFree(p);\n#endif",
                           "#ifdef __MUSA_ARCH__\n#else\ncudaFree(p);\n#endif",  // For the host.
                           "#if __MUSA_ARCH__ != 220\ncudaFree(p);\n#endif"}) {
    EXPECT_THAT(refused_source(line).message, HasSubstr("\"cudaFree\"")) << line;
  }
  ported_source("#if __MUSA_ARCH__ >= 320 || (__MUSA_ARCH__ < 0)\ncudaFree(p);\n#endif");
}

TEST(Dialect, HasBfloat16FromMp22On) {
  const std::string source = "#include <musa_bf16.h>\nmt_bfloat16 x;";
  EXPECT_EQ(refused_source(source, "mp_22").message, "");
  EXPECT_THAT(refused_source(source, "mp_21").message, HasSubstr("\"mt_bfloat16\" needs mp_22"));
  EXPECT_THAT(ported_source(source), HasSubstr("nv_bfloat16 x;"));
  const std::string guarded =
      "#include <musa_bf16.h>\n#if __MUSA_ARCH__ >= 220\nmt_bfloat16 x;\n#endif";
  EXPECT_EQ(refused_source(guarded, "mp_21").message, "");
}

TEST(Dialect, HasMatrixFunctionsInTheMusaNamespace) {
  EXPECT_THAT(ported_source("#include <mma.h>\nusing namespace mtmusa;"),
              HasSubstr("using namespace nvcuda;"));
  EXPECT_THAT(refused_source("nvcuda::wmma::fill_fragment(f, 0);").message,
              HasSubstr("write \"mtmusa\""));
}

TEST(Dialect, HasNoMatrixProductsInWarpsOf128Threads) {
  std::vector<compile::Extension> extensions = extensions_with("using namespace mtmusa;");
  const auto outcome = outcome_of(extensions, module_with("using namespace mtmusa;"), "mp_22");
  ASSERT_TRUE(outcome && std::holds_alternative<task::Unsupported>(*outcome));
}

TEST(Dialect, HasNoPortForAssemblyOfMusa) {
  const std::string line = "asm(\"LSU.LD.B128 %0, %1\" : \"=R\"(v) : \"R\"(x));";
  std::vector<compile::Extension> extensions = extensions_with(line);
  const auto outcome = outcome_of(extensions, module_with(line));
  ASSERT_TRUE(outcome && std::holds_alternative<task::Unsupported>(*outcome));
}

TEST(Dialect, HasNoPortForAHeaderThatTorchMusaMadeOfOneForCuda) {
  const std::string line =
      "#include \"torch_musa/share/generated_cuda_compatible/aten/src/THC/THCAtomics.muh\"";
  std::vector<compile::Extension> extensions = extensions_with(line);
  const auto outcome = outcome_of(extensions, module_with(line));
  ASSERT_TRUE(outcome && std::holds_alternative<task::Unsupported>(*outcome));
}

TEST(Dialect, RefusesAModuleThatTorchLacks) {
  for (const char* line : {"from torch.utils.musa_extension import load_inline\n",
                           "from torch.utils import musa_extension\n"}) {
    EXPECT_THAT(refused(line).message, HasSubstr("torch_musa.utils.musa_extension")) << line;
  }
}

TEST(Dialect, NamesTorchada) {
  const auto port = dialect().port("import torchada\nx.cuda()\n", "mp_31");
  const auto* unsupported = std::get_if<task::Unsupported>(&std::get<task::Outcome>(port));
  ASSERT_NE(unsupported, nullptr);
  EXPECT_EQ(unsupported->constructs.at(0).rule, "dialect.torchada");
}

TEST(Dialect, NamesTheSourceOfAnErrorOutsideTheModulesLines) {
  std::vector<compile::Extension> extensions = extensions_with("cudaFree(p);");
  const auto outcome = outcome_of(extensions, "S = 'cuda' + 'Free(p);'\n");
  const auto& error = std::get<task::CompileFailed>(outcome.value()).diagnostics.at(0);
  EXPECT_EQ(error.location.source, "musa_sources[0]");
  EXPECT_EQ(error.location.line, 2);
  EXPECT_EQ(error.location.excerpt, "cudaFree(p);");
}

TEST(Dialect, NamesAnMccFeatureWithoutAPortToCuda) {
  const auto rule_of = [](const std::string& source) {
    std::vector<compile::Extension> extensions = extensions_with(source);
    const auto outcome = outcome_of(extensions, "S = 1\n");
    return outcome ? std::get<task::Unsupported>(*outcome).constructs.at(0).rule : "";
  };
  EXPECT_EQ(rule_of("typedef float four __attribute__((vector_size(16)));"),
            "dialect.vector_types");
  EXPECT_EQ(rule_of("mtmusa::wmma::fragment<mtmusa::wmma::matrix_a, 16, 16, 32, __half> a;"),
            "dialect.wide_matrices");
  EXPECT_EQ(rule_of("int vector_size = 16;"), "");
}

TEST(Dialect, RejectsNvccFlagsThatAModuleAssembled) {
  std::vector<compile::Extension> extensions = extensions_with("");
  extensions[0].extra_cuda_cflags = {"-O3 --use_fast_math"};
  EXPECT_EQ(outcome_of(extensions, "F = ['-ffast-math']\n"), std::nullopt);
  const auto changed = outcome_of(extensions, "F = '-O3 --use_fast_math'\n");
  EXPECT_THAT(std::get<task::CompileFailed>(changed.value()).diagnostics.at(0).message,
              HasSubstr("write \"-ffast-math\""));
  extensions[0].extra_cuda_cflags = {"-gencode=arch=compute_90,code=sm_90"};
  EXPECT_NE(outcome_of(extensions, "F = ['-ffast-math']\n"), std::nullopt);
}

TEST(Dialect, RefusesValuesOfFlagsThatMusaLacks) {
  for (const char* flag :
       {"--offload-arch=sm_90", "--offload-arch=mp_99", "-DX=cudaGetLastError()",
        "--cuda-gpu-arch=sm_80", "--extended-lambda", "--threads", "-O3 -use_fast_math"}) {
    std::vector<compile::Extension> extensions = extensions_with("");
    extensions[0].extra_cuda_cflags = {flag};
    EXPECT_NE(outcome_of(extensions, ""), std::nullopt) << flag;
  }
  std::vector<compile::Extension> extensions = extensions_with("");
  extensions[0].extra_cuda_cflags = {"--offload-arch=mp_22", "-DX=musaGetLastError", "-DY", "-D"};
  EXPECT_EQ(outcome_of(extensions, ""), std::nullopt);
}

TEST(Dialect, RefusesNamesWhoseHeaderIsMissing) {
  const auto outcome_with = [](const std::string& line, const std::string& include) {
    std::vector<compile::Extension> extensions = extensions_with(line + "\n#include " + include);
    return outcome_of(extensions, "");
  };
  const std::string core = "\"torch_musa/csrc/core/";
  const std::string stream = core + "MUSAStream.h\"";
  EXPECT_NE(outcome_with("c10::musa::getCurrentMUSAStream();", "<a.h>"), std::nullopt);
  EXPECT_EQ(outcome_with("c10::musa::getCurrentMUSAStream();", stream), std::nullopt);
  EXPECT_NE(outcome_with("c10::musa::MUSAGuard g(d);", stream), std::nullopt);
  EXPECT_EQ(outcome_with("c10::musa::MUSAGuard g(d);", core + "MUSAGuard.h\""), std::nullopt);
  EXPECT_NE(outcome_with("__mt_bfloat16 b;", stream), std::nullopt);
  EXPECT_EQ(outcome_with("__mt_bfloat16 b;", "<musa_bf16.h>"), std::nullopt);
  EXPECT_EQ(outcome_with("struct MUSAGuard { };", "<a.h>"), std::nullopt);
}

TEST(Dialect, RejectsLaunchesInTextForTheHostCompiler) {
  std::vector<compile::Extension> extensions = extensions_with("k<<<1, 2>>>(p);");
  EXPECT_EQ(outcome_of(extensions, ""), std::nullopt);
  extensions = extensions_with("");
  extensions[0].cpp_sources = {"void f() {\nk<<<1, 2>>>(p); }"};
  const auto outcome = outcome_of(extensions, "");
  const auto& error = std::get<task::CompileFailed>(outcome.value()).diagnostics.at(0);
  EXPECT_THAT(error.message, HasSubstr("a kernel launch"));
  EXPECT_EQ(error.location.line, 2);
}

TEST(Dialect, RefusesHeadersOfCudaThatNoRuleKnows) {
  EXPECT_THAT(refused_source("#include <ATen/cuda/detail/KernelUtils.h>").message,
              HasSubstr("\"ATen/cuda/detail/KernelUtils.h\""));
}

TEST(Dialect, KnowsWhatOneSourceDefinesAndAnotherUses) {
  std::vector<compile::Extension> extensions = extensions_with("int cudaCores() { return 1; }");
  extensions[0].cpp_sources = {"#include \"musa_mine.h\"\nvoid g() { cudaCores(); }\n"};
  extensions[0].files = {{"musa_mine.h", "musaStream_t f();\n"}};
  EXPECT_EQ(outcome_of(extensions, ""), std::nullopt);
  EXPECT_EQ(extensions[0].cpp_sources[0], "#include \"musa_mine.h\"\nvoid g() { cudaCores(); }\n");
  EXPECT_EQ(extensions[0].files[0].text, "cudaStream_t f();\n");
}

TEST(Dialect, KeepsEveryLineOfAModule) {
  EXPECT_EQ(ported("import torch\nimport torch_musa\ntry:\n  import torch_musa\nfinally: pass\n"),
            "import torch\nimport torch.cuda as torch_musa\n"
            "try:\n  import torch.cuda as torch_musa\nfinally: pass\n");
  EXPECT_EQ(ported("import torch, torch_musa\n"), "import torch, torch.cuda as torch_musa\n");
  EXPECT_EQ(ported("load_inline(extra_musa_cflags=['--offload-arch=mp_31'],\n musa_sources=s)\n"),
            "load_inline(extra_cuda_cflags=['--offload-arch=mp_31'],\n cuda_sources=s)\n");
}

TEST(Dialect, KeepsTheNamesOfTheArchitecture) {
  const std::string guard = "#if __MUSA_ARCH__ >= 310 && defined(__MUSACC__)\n#endif";
  EXPECT_THAT(ported_source(guard), HasSubstr(guard));
  EXPECT_THAT(musa_prelude("mp_22"), HasSubstr("#define __MUSA_ARCH__ 220\n"));
}

TEST(Dialect, TranslatesFlags) {
  EXPECT_THAT(nvcc_flags({"-O3", "--offload-arch=mp_31", "-mllvm -mtgpu-if-convert", "-Od3",
                          "-ffast-math", "-fno-strict-aliasing", "-x", "musa", "-DN=1"}),
              ElementsAre("-O3", "--use_fast_math", "-Xcompiler=-fno-strict-aliasing", "-DN=1"));
}

TEST(Dialect, RejectsNoCandidateOfTheCorpus) {
  const auto rules = musify::load_rules(kRoot / "data/musify", musify::Target::kMusa).value();
  int num = 0;
  for (const char* set : {"honest", "kernelbench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests/corpus" / set)) {
      if (entry.path().extension() != ".py") continue;
      const std::string cuda = read_file(entry.path(), size_t{1} << 20).value();
      const std::string musa = musify::port_source(cuda, musify::Language::kPython, rules, {}).text;
      SCOPED_TRACE(entry.path());
      const std::string back = ported(musa);
      EXPECT_EQ(std::ranges::count(back, '\n'), std::ranges::count(musa, '\n'));
      ++num;
    }
  }
  EXPECT_GT(num, 100);
}

TEST(Flags, ComeBackFromLegalityAsMccHasThem) {
  EXPECT_THAT(mcc_flags({"-O3", "--use_fast_math", "-Xcompiler=-fno-exceptions"},
                        {"-O3 -mtgpu", "-Od3", "-mllvm -load=x.so", "--offload-arch=mp_22",
                         "-ccbin=g++", "-mathx-disable-fp64"}),
              testing::ElementsAre("-O3", "-ffast-math", "-fno-exceptions", "-mtgpu", "-Od3",
                                   "-mathx-disable-fp64"));
  EXPECT_EQ(cuda_link_flag("-lmusart"), "-lcudart");
  EXPECT_EQ(cuda_link_flag("-lmublas"), "-lcublas");
  EXPECT_EQ(cuda_link_flag("-lm"), "-lm");
}

TEST(Rules, SeeAPortWithTheSameLineNumbers) {
  EXPECT_EQ(dialect().to_cuda("#include <musa_runtime.h>\nmublasSgemm(h);\n"),
            "#include <cuda_runtime.h>\ncublasSgemm(h);\n");
  EXPECT_EQ(dialect().to_cuda("mublasCreate_v2"), "cublasCreate_v2");
}

TEST(Note, NeverClaimsThatAResultHoldsOnMusa) {
  task::Verdict verdict;
  verdict.protocol.dialect = task::Dialect::kMusa;
  verdict.protocol.musa_architecture = "mp_31";
  verdict.backend = task::Backend::kMusa;
  EXPECT_EQ(task::dialect_note(verdict),
            "MUSA dialect (mp_31), compiled by mcc; no device took part");
  verdict.protocol.device = "GPU-0";
  EXPECT_EQ(task::dialect_note(verdict),
            "MUSA dialect (mp_31), judged by the MUSA backend, which nobody has verified on "
            "hardware yet (docs/musa.md)");
}

// ---- Evidence -----------------------------------------------------------------------------------

task::Verdict restored(task::Outcome outcome, const std::string& module) {
  task::Verdict verdict;
  verdict.protocol.dialect = task::Dialect::kMusa;
  verdict.outcome = std::move(outcome);
  dialect().restore(verdict, {"a", module});
  return verdict;
}

TEST(Evidence, HasTheCandidatesOwnLineAndTheNamesOfMusa) {
  const std::string module = "import torch_musa\nmusaMaloc(&p);\nclass ModelNew: pass\n";
  const task::Verdict verdict =
      restored(task::CompileFailed{{{"error",
                                     "'cudaMaloc' was not declared; did you mean 'cudaMalloc'?",
                                     {"candidate", 2, 1, "cudaMaloc(&p);"}}}},
               module);
  const auto& error = std::get<task::CompileFailed>(verdict.outcome).diagnostics.at(0);
  EXPECT_EQ(error.message, "'musaMaloc' was not declared; did you mean 'musaMalloc'?");
  EXPECT_EQ(error.location.excerpt, "musaMaloc(&p);");
}

TEST(Evidence, HasNoAdviceToWriteTheSameName) {
  const task::Verdict verdict =
      restored(task::CompileFailed{{{"error",
                                     "'musaFree' was not declared; did you mean 'cudaFree'?",
                                     {"candidate", 1, 1, "musaFree(p);"}}}},
               "class ModelNew: pass\n");
  EXPECT_EQ(std::get<task::CompileFailed>(verdict.outcome).diagnostics.at(0).message,
            "'musaFree' was not declared");
}

TEST(Evidence, OfANativeSourceHasItsNameOnMusa) {
  task::Exception exception{"RuntimeError", "CUDA error: cudaErrorInvalidValue", {}, {}};
  exception.location = {"cuda_sources[0]", 7, 1, "cudaFree(p);"};
  const task::Verdict verdict =
      restored(task::Crashed{"forward", exception, 0, 0, {}, {}}, "class ModelNew: pass\n");
  const auto& crashed = std::get<task::Crashed>(verdict.outcome);
  EXPECT_EQ(crashed.exception->message, "MUSA error: musaErrorInvalidValue");
  EXPECT_EQ(crashed.exception->location.source, "musa_sources[0]");
  EXPECT_EQ(crashed.exception->location.excerpt, "musaFree(p);");
}

TEST(Evidence, LeavesTheCandidatesOwnMessages) {
  const task::Exception exception{
      "ValueError", "foreigncudaMalloc is not cudaMalloc; FOREIGNCUDA", {}, {}};
  const task::Verdict verdict =
      restored(task::Crashed{"forward", exception, 0, 0, {}, {}}, "class ModelNew: pass\n");
  EXPECT_EQ(std::get<task::Crashed>(verdict.outcome).exception->message,
            "cudaMalloc is not musaMalloc; CUDA");
}

TEST(Evidence, OfACudaCandidateStays) {
  task::Verdict verdict;
  verdict.outcome = task::Infra{"cudaErrorUnknown"};
  dialect().restore(verdict, {"a", "class ModelNew: pass\n"});
  EXPECT_EQ(std::get<task::Infra>(verdict.outcome).message, "cudaErrorUnknown");
}

}  // namespace
}  // namespace mc::eval
