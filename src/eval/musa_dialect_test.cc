// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <variant>

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
  static const MusaDialect kDialect = MusaDialect::create(kRoot / "musify").value();
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

// The first error of a module that is refused.
task::Diagnostic refused(const std::string& module) {
  const auto port = dialect().port(module, "mp_31");
  const auto* outcome = std::get_if<task::Outcome>(&port);
  const auto* failed = outcome ? std::get_if<task::CompileFailed>(outcome) : nullptr;
  return failed == nullptr ? task::Diagnostic{} : failed->diagnostics.at(0);
}

// A MUSA module whose third line is of C++.
std::string with_cpp(const std::string& line) {
  return "import torch, torch_musa\nS = r'''#include <musa_runtime.h>\n" + line + "\n'''\n";
}

struct Word {
  std::string module;
  std::string word;
  int line;
};

class Unported : public ::testing::TestWithParam<Word> {};

TEST_P(Unported, IsRefusedWithItsWordAndPlace) {
  const task::Diagnostic error = refused(GetParam().module);
  EXPECT_THAT(error.message, HasSubstr('"' + GetParam().word + '"'));
  EXPECT_THAT(error.message, HasSubstr("(dialect.cuda)"));
  EXPECT_EQ(error.location.source, "candidate");
  EXPECT_EQ(error.location.line, GetParam().line);
  EXPECT_THAT(error.location.excerpt, HasSubstr(GetParam().word));
}

INSTANTIATE_TEST_SUITE_P(
    Cpp, Unported,
    ::testing::Values(Word{with_cpp("void f() { cudaMalloc(&p, 4); }"), "cudaMalloc", 3},
                      Word{with_cpp("#include <cuda_runtime.h>"), "cuda_runtime.h", 3},
                      Word{with_cpp("#include <cuda_fp16.h>"), "cuda_fp16.h", 3},
                      Word{with_cpp("__nv_bfloat16 x;"), "__nv_bfloat16", 3},
                      Word{with_cpp("auto s = at::cuda::getCurrentCUDAStream();"), "cuda", 3},
                      Word{with_cpp("c10::cuda::CUDAGuard guard(d);"), "cuda", 3},
                      Word{with_cpp("C10_CUDA_KERNEL_LAUNCH_CHECK();"),
                           "C10_CUDA_KERNEL_LAUNCH_CHECK", 3},
                      Word{with_cpp("TORCH_CHECK(x.is_cuda());"), "is_cuda", 3},
                      Word{with_cpp("torch::zeros({1}, torch::kCUDA);"), "kCUDA", 3},
                      Word{with_cpp("cudaStream_t s = 0;"), "cudaStream_t", 3},
                      Word{with_cpp("cublasHandle_t h;"), "cublasHandle_t", 3},
                      Word{with_cpp("curandState s;"), "curandState", 3},
                      Word{with_cpp("#ifdef __CUDA_ARCH__\n#endif"), "__CUDA_ARCH__", 3}));

INSTANTIATE_TEST_SUITE_P(
    Python, Unported,
    ::testing::Values(Word{"x = x.cuda()\n", "cuda", 1},
                      Word{"import torch\nx = torch.ones(1, device='cuda')\n", "cuda", 2},
                      Word{"import torch\nx = x.to(\"cuda:0\")\n", "cuda", 2},
                      Word{"import torch\ntorch.cuda.synchronize()\n", "cuda", 2},
                      Word{"import torch\nfrom torch.utils.cpp_extension import load_inline\n",
                           "torch", 2},
                      Word{"m = load_inline('m', musa_sources=s, extra_cuda_cflags=['-O3'])\n",
                           "extra_cuda_cflags", 1},
                      Word{"m = load_inline('m', cuda_sources=s)\n", "cuda_sources", 1},
                      Word{"m = load_inline('m', musa_sources=s, no_implicit_headers=True)\n",
                           "no_implicit_headers=True", 1}));

TEST(Dialect, RefusesWhatHasNoCounterpart) {
  EXPECT_THAT(refused(with_cpp("asm volatile(\"nop;\");")).message, HasSubstr("inline PTX"));
  EXPECT_THAT(refused(with_cpp("#include <mma.h>")).message, HasSubstr("wmma"));
}

TEST(Dialect, RefusesMarksThatExcludeLines) {
  EXPECT_EQ(refused("x = 1\nx.cuda()  # MUSIFY_EXCL_LINE\n").location.line, 2);
}

TEST(Dialect, HasNoPortForAnUnknownNameOfMusa) {
  const auto port = dialect().port(with_cpp("__musa_shfl_xor_sync_i32(1);"), "mp_31");
  const auto& outcome = std::get<task::Outcome>(port);
  const auto& unsupported = std::get<task::Unsupported>(outcome);
  EXPECT_THAT(unsupported.constructs.at(0).message, HasSubstr("__musa_shfl_xor_sync_i32"));
  EXPECT_EQ(unsupported.constructs.at(0).location.line, 3);
}

TEST(Dialect, KeepsNamesThatMusaHas) {
  ported(
      with_cpp("#include <cub/cub.cuh>\n#include <thrust/sort.h>\nhalf h; __half2 g;\n"
               "TORCH_CUDA_CPP_API void f(); // cudaMalloc of CUDA\n"
               "int cudaCores = 1; TORCH_CHECK(cudaCores, \"no cuda tensor\");"));
}

TEST(Dialect, KeepsEveryLineOfAModule) {
  EXPECT_EQ(ported("import torch\nimport torch_musa\ntry:\n  import torch_musa\nfinally: pass\n"),
            "import torch\npass\ntry:\n  pass\nfinally: pass\n");
  EXPECT_EQ(ported("import torch, torch_musa\n"), "import torch\n");
  EXPECT_EQ(ported("load_inline(extra_musa_cflags=['--offload-arch=mp_31'],\n musa_sources=s)\n"),
            "load_inline(\ncuda_sources=s)\n");
}

TEST(Dialect, KeepsTheNamesOfTheArchitecture) {
  const std::string guard = "#if __MUSA_ARCH__ >= 310 && defined(__MUSACC__)\n#endif";
  EXPECT_THAT(ported(with_cpp(guard)), HasSubstr(guard));
  EXPECT_THAT(musa_prelude("mp_22"), HasSubstr("#define __MUSA_ARCH__ 220\n"));
}

TEST(Dialect, HasWarpsOf128ThreadsOnTheOldArchitectures) {
  using task::Dialect;
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_21"), 128);
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_22"), 128);
  EXPECT_EQ(warp_threads(Dialect::kMusa, "mp_31"), 32);
  EXPECT_EQ(warp_threads(Dialect::kCuda, "mp_22"), 32);
}

TEST(Dialect, TranslatesFlags) {
  EXPECT_THAT(nvcc_flags({"-O3", "--offload-arch=mp_31", "-mllvm -mtgpu-if-convert", "-Od3",
                          "-ffast-math", "-fno-strict-aliasing", "-x", "musa", "-DN=1"}),
              ElementsAre("-O3", "--use_fast_math", "-Xcompiler=-fno-strict-aliasing", "-DN=1"));
}

TEST(Dialect, RefusesNoHonestCandidate) {
  const auto rules = musify::load_rules(kRoot / "musify", musify::Target::kMusa).value();
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

TEST(Evidence, OfACudaCandidateStays) {
  task::Verdict verdict;
  verdict.outcome = task::Infra{"cudaErrorUnknown"};
  dialect().restore(verdict, {"a", "class ModelNew: pass\n"});
  EXPECT_EQ(std::get<task::Infra>(verdict.outcome).message, "cudaErrorUnknown");
}

}  // namespace
}  // namespace mc::eval
