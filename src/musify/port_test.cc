// SPDX-License-Identifier: Apache-2.0
#include "musify/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lex/testing/random_text.h"
#include "musify/rules.h"
#include "musify/testing/port_properties.h"

namespace mc::musify {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const fs::path kRoot = MC_SOURCE_DIR;

const Rules& rules_to(Target target) {
  static const Rules kToMusa = load_rules(kRoot / "data/musify", Target::kMusa).value();
  static const Rules kToCuda = load_rules(kRoot / "data/musify", Target::kCuda).value();
  return target == Target::kMusa ? kToMusa : kToCuda;
}

Port to_musa(std::string_view text, Language language, const PortOptions& options = {}) {
  return port_source(text, language, rules_to(Target::kMusa), options);
}

std::string to_cuda(std::string_view text, Language language) {
  return port_source(text, language, rules_to(Target::kCuda), {}).text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> honest_candidates() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "tests/corpus/honest")) {
    if (entry.path().extension() == ".py") found.push_back(entry.path());
  }
  return found;
}

struct Case {
  const char* cuda;
  const char* musa;
};

// Cases that are the same text in both directions.
class CppRule : public ::testing::TestWithParam<Case> {};

TEST_P(CppRule, PortsToMusa) {
  EXPECT_EQ(to_musa(GetParam().cuda, Language::kCpp).text, GetParam().musa);
}

TEST_P(CppRule, PortsBackToCuda) {
  EXPECT_EQ(to_cuda(GetParam().musa, Language::kCpp), GetParam().cuda);
}

TEST_P(CppRule, LeavesNoRemnant) {
  EXPECT_THAT(to_musa(GetParam().cuda, Language::kCpp).remnants, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Includes, CppRule,
    ::testing::Values(Case{"#include <cuda_runtime.h>\n", "#include <musa_runtime.h>\n"},
                      Case{"#include \"cuda_fp16.h\"\n", "#include \"musa_fp16.h\"\n"},
                      Case{"#include <cublas_v2.h>\n", "#include <mublas.h>\n"},
                      Case{"#include <ATen/cuda/CUDAContext.h>\n",
                           "#include \"torch_musa/csrc/aten/musa/MUSAContext.h\"\n"},
                      Case{"#include <c10/cuda/CUDAGuard.h>\n",
                           "#include \"torch_musa/csrc/core/MUSAGuard.h\"\n"},
                      Case{"#include <cub/cub.cuh>\n", "#include <cub/cub.cuh>\n"}));

INSTANTIATE_TEST_SUITE_P(
    Names, CppRule,
    ::testing::Values(
        Case{"cudaMalloc(&p, 4);", "musaMalloc(&p, 4);"},
        Case{"f(CUDA_R_32F, CUDART_INF_F);", "f(MUSA_R_32F, MUSART_INF_F);"},
        Case{"cublasSgemm(CUBLAS_OP_N);", "mublasSgemm(MUBLAS_OP_N);"},
        Case{"f(cudaErrorCudartUnloading);", "f(musaErrorMusartUnloading);"},
        Case{"curandState s;", "murandState s;"},
        Case{"curandStatePhilox4_32_10_t s;", "murand_state_philox4x32_10 s;"},
        Case{"cufftExecC2C(p);", "mufftExecC2C(p);"},
        Case{"cusparseCreate(&h);", "musparseCreate(&h);"},
        Case{"cudnnCreate(&h);", "mudnnCreate(&h);"}, Case{"ncclComm_t c;", "mcclComm_t c;"},
        Case{"CUresult r = cuInit(0);", "MUresult r = muInit(0);"},
        Case{"int a = cumsum(b);", "int a = cumsum(b);"},
        Case{"nvcuda::wmma::fill_fragment(c, 0);", "mtmusa::wmma::fill_fragment(c, 0);"},
        Case{"nv_bfloat16 a; nv_bfloat162 b;", "mt_bfloat16 a; mt_bfloat162 b;"},
        Case{"REGISTER_DEVICE_IMPL(nms, CUDA, f);", "REGISTER_DEVICE_IMPL(nms, PrivateUse1, f);"},
        Case{"template <int CUDA_N, class CUDA_T> void f(CUDA_T*);",
             "template <int CUDA_N, class CUDA_T> void f(CUDA_T*);"},
        Case{"__nv_bfloat162 a; __nv_fp8_e4m3 b;", "__mt_bfloat162 a; __mt_fp8_e4m3 b;"}));

INSTANTIATE_TEST_SUITE_P(
    Torch, CppRule,
    ::testing::Values(
        Case{"at::cuda::getCurrentCUDAStream();", "at::musa::getCurrentMUSAStream();"},
        Case{"const c10::cuda::CUDAGuard guard(x.device());",
             "const c10::musa::MUSAGuard guard(x.device());"},
        Case{"C10_CUDA_CHECK(cudaGetLastError());", "C10_MUSA_CHECK(musaGetLastError());"},
        Case{"TORCH_CHECK(x.is_cuda(), \"x must be a CUDA tensor\");",
             "TORCH_CHECK(x.is_privateuseone(), \"x must be a CUDA tensor\");"},
        Case{"x.to(torch::kCUDA);", "x.to(torch::kPrivateUse1);"},
        Case{"gpuAtomicAdd(p, v);", "at::musa::gpuAtomicAdd(p, v);"},
        Case{"x.to(torch::Device(\"cuda:0\"));", "x.to(torch::Device(\"musa:0\"));"},
        Case{"TORCH_LIBRARY_IMPL(ours, CUDA, m) {}", "TORCH_LIBRARY_IMPL(ours, PrivateUse1, m) {}"},
        Case{"k<<<1, 2, 0, s>>>(x);", "k<<<1, 2, 0, s>>>(x);"}));

INSTANTIATE_TEST_SUITE_P(Guards, CppRule,
                         ::testing::Values(Case{"#if __CUDA_ARCH__ >= 800\n#endif\n",
                                                "#if __MUSA_ARCH__ >= 220\n#endif\n"},
                                           Case{"#if 900 <= __CUDA_ARCH__\n#endif\n",
                                                "#if 310 <= __MUSA_ARCH__\n#endif\n"},
                                           Case{"#ifdef __CUDA_ARCH__\n#endif\n",
                                                "#ifdef __MUSA_ARCH__\n#endif\n"}));

INSTANTIATE_TEST_SUITE_P(
    Kept, CppRule,
    ::testing::Values(
        Case{"// cudaMalloc\n/* CUDA */ int x;", "// cudaMalloc\n/* CUDA */ int x;"},
        Case{"int cudaCores = 1; f(cudaCores);", "int cudaCores = 1; f(cudaCores);"},
        Case{"CUDA_KERNEL_ASSERT(a);", "CUDA_KERNEL_ASSERT(a);"},
        Case{"int a = f(x, y), cudaB = 1, *cudaC; cudaB = cudaFree(cudaC);",
             "int a = f(x, y), cudaB = 1, *cudaC; cudaB = musaFree(cudaC);"},
        Case{"void f(int n, cudaStream_t = 0); struct S { int a, *cudaP; } s = {a, cudaSuccess};",
             "void f(int n, musaStream_t = 0); struct S { int a, *cudaP; } s = {a, musaSuccess};"},
        Case{"enum K : int { cudaK, cudaL = 2 }; auto& [cudaM, n] = p; f(cudaK, cudaL, cudaM);",
             "enum K : int { cudaK, cudaL = 2 }; auto& [cudaM, n] = p; f(cudaK, cudaL, cudaM);"},
        Case{"int (*cudaF)(int) = 0; namespace a::cuda { } a::cuda::f(cudaF);",
             "int (*cudaF)(int) = 0; namespace a::cuda { } a::cuda::f(cudaF);"},
        Case{"#define APPLY(a, cudaE) g(cudaE)\nAPPLY(1, cudaFree(p));",
             "#define APPLY(a, cudaE) g(cudaE)\nAPPLY(1, musaFree(p));"},
        Case{"f(a, cudaSuccess, 1); std::map<int, cudaEvent_t, X> m; int x[] = {a, cudaSuccess};",
             "f(a, musaSuccess, 1); std::map<int, musaEvent_t, X> m; int x[] = {a, musaSuccess};"},
        Case{"std::tuple<A, B<C>>\nspmm_cuda(A a); at::Tensor &scale_cuda(at::Tensor &x_cuda);",
             "std::tuple<A, B<C>>\nspmm_cuda(A a); at::Tensor &scale_cuda(at::Tensor &x_cuda);"},
        Case{"f(a & cudaB); x = at::b * cudaC;", "f(a & musaB); x = at::b * musaC;"},
        Case{"#define CUDA_CHECK(x) x\nCUDA_CHECK(cudaFree(p));",
             "#define CUDA_CHECK(x) x\nCUDA_CHECK(musaFree(p));"},
        Case{"struct cudaThing { int a; }; cudaThing t;",
             "struct cudaThing { int a; }; cudaThing t;"},
        Case{"cudaFree(p);  // MUSIFY_EXCL_LINE\ncudaFree(q);",
             "cudaFree(p);  // MUSIFY_EXCL_LINE\nmusaFree(q);"},
        Case{"// MUSIFY_EXCL_START\ncudaFree(p);\n// MUSIFY_EXCL_STOP\ncudaFree(q);",
             "// MUSIFY_EXCL_START\ncudaFree(p);\n// MUSIFY_EXCL_STOP\nmusaFree(q);"}));

// Single lines of a module, without an import of torch or torch_musa.
class PythonRule : public ::testing::TestWithParam<Case> {};

TEST_P(PythonRule, PortsToMusa) {
  EXPECT_EQ(to_musa(GetParam().cuda, Language::kPython).text, GetParam().musa);
}

TEST_P(PythonRule, LeavesNoRemnant) {
  EXPECT_THAT(to_musa(GetParam().cuda, Language::kPython).remnants, IsEmpty());
}

TEST_P(PythonRule, PortsBackToCuda) {
  EXPECT_EQ(to_cuda(GetParam().musa, Language::kPython), GetParam().cuda);
}

INSTANTIATE_TEST_SUITE_P(
    All, PythonRule,
    ::testing::Values(
        Case{"import torch\nfrom torch.utils.cpp_extension import load_inline\n",
             "import torch\nimport torch_musa\n"
             "from torch_musa.utils.musa_extension import load_inline\n"},
        Case{"x = x.cuda()\ny = x.is_cuda\n", "x = x.musa()\ny = x.is_musa\n"},
        Case{"if True:\r\n  import torch\r\n  torch.cuda.synchronize()\r\n",
             "if True:\r\n  import torch\r\n  import torch_musa\r\n  torch.musa.synchronize()\r\n"},
        Case{"x.to('cuda').to(f\"cuda:{i}\")\n", "x.to('musa').to(f\"musa:{i}\")\n"},
        Case{"f(f\"cuda:{i or 0}\", f'cuda:{a[\"b c\"]}')\n",
             "f(f\"musa:{i or 0}\", f'musa:{a[\"b c\"]}')\n"},
        Case{"print('cuda is here', 'use cuda')\n", "print('cuda is here', 'use cuda')\n"},
        Case{"# torch.cuda\n'''x.cuda()'''\n", "# torch.cuda\n'''x.cuda()'''\n"},
        Case{"cuda_sources = [a]\nload_inline(cuda_sources=cuda_sources)\n",
             "cuda_sources = [a]\nload_inline(extra_musa_cflags=[\"--offload-arch=mp_31\"], "
             "musa_sources=cuda_sources)\n"},
        Case{"f(cuda_sources=a, extra_cuda_cflags=['-O3', '--use_fast_math'])\n",
             "f(musa_sources=a, extra_musa_cflags=[\"--offload-arch=mp_31\", '-O3', "
             "'-ffast-math'])\n"},
        Case{"f(extra_cuda_cflags=[], cuda_sources=a, with_cuda=True)\n",
             "f(extra_musa_cflags=[\"--offload-arch=mp_31\",], musa_sources=a, with_musa=True)\n"},
        Case{"s = \"#include <cuda.h>\\n\" \"cudaFree(p);\\n\"\n",
             "s = \"#include <musa.h>\\n\" \"musaFree(p);\\n\"\n"},
        Case{"s = \"#include <c10/cuda/CUDAStream.h>\\n__global__ void k();\"\n",
             "s = \"#include \\\"torch_musa/csrc/core/MUSAStream.h\\\"\\n__global__ void k();\"\n"},
        Case{"S = 'cudaFree(p);'\nf(functions=['k'], cpp_sources=S)\n",
             "S = 'musaFree(p);'\nf(functions=['k'], cpp_sources=S)\n"}));

INSTANTIATE_TEST_SUITE_P(
    Modules, PythonRule,
    ::testing::Values(
        Case{"import torch as t\nt.cuda.synchronize()\n",
             "import torch as t\nimport torch_musa\nt.musa.synchronize()\n"},
        Case{"w = torch\nw.cuda.synchronize()\n", "w = torch\nw.musa.synchronize()\n"},
        Case{"from torch import nn, cuda\ncuda.synchronize()\n",
             "from torch import nn, musa as cuda\nimport torch_musa\ncuda.synchronize()\n"},
        Case{"from torch import (cuda as c)\n",
             "from torch import (musa as c)\nimport torch_musa\n"},
        Case{"from torch import cuda as musa\n", "from torch import musa\nimport torch_musa\n"},
        Case{"move = x.cuda\nself.cuda = 1\n", "move = x.musa\nself.cuda = 1\n"},
        Case{"getattr(torch, 'cuda')\n", "getattr(torch, 'musa')\n"},
        Case{"f(**{'extra_cuda_cflags': ['-O3']}, verbose=True)\n",
             "f(**{'extra_musa_cflags': ['-O3']}, verbose=True)\n"},
        Case{"a['cuda_sources'] = s\n", "a['musa_sources'] = s\n"}));

INSTANTIATE_TEST_SUITE_P(
    Braces, PythonRule,
    ::testing::Values(Case{"f'{torch.cuda.current_device():>{w}} {{torch.cuda}}'\n",
                           "f'{torch.musa.current_device():>{w}} {{torch.cuda}}'\n"},
                      Case{"f\"{'cuda'}:{x.is_cuda!r}\"\n", "f\"{'musa'}:{x.is_musa!r}\"\n"},
                      Case{"f'torch.cuda {a}'\n", "f'torch.cuda {a}'\n"},
                      Case{"s = f'#include <cuda.h>\\nvoid {n}() {{ cudaFree({p}); }}'\n",
                           "s = f'#include <musa.h>\\nvoid {n}() {{ musaFree({p}); }}'\n"}));

// Literals without a marker that become the source of an extension.
INSTANTIATE_TEST_SUITE_P(
    Sources, PythonRule,
    ::testing::Values(
        Case{"A = 'cudaFree(p);'\nB = A + 'cudaFree(q);'\nf(cpp_sources=[B])\n",
             "A = 'musaFree(p);'\nB = A + 'musaFree(q);'\nf(cpp_sources=[B])\n"},
        Case{"A: str = 'F(p);'\nA = A.replace('F', 'cudaFree')\nf(cpp_sources='\\n'.join([A]))\n",
             "A: str = 'F(p);'\nA = A.replace('F', 'musaFree')\nf(cpp_sources='\\n'.join([A]))\n"},
        Case{"def g(n):\n  return 'cudaFree(%s);' % n\nf(cpp_sources=g('p'))\n",
             "def g(n):\n  return 'musaFree(%s);' % n\nf(cpp_sources=g('p'))\n"},
        Case{"def g(name, s):\n  f(name=name, cpp_sources=s)\ng('cuda_x', 'cudaFree(p);')\n",
             "def g(name, s):\n  f(name=name, cpp_sources=s)\ng('cuda_x', 'musaFree(p);')\n"},
        Case{"class K:\n  s = 'cudaFree(p);'\n  def t(self):\n    f(cpp_sources=self.s)\n",
             "class K:\n  s = 'musaFree(p);'\n  def t(self):\n    f(cpp_sources=self.s)\n"},
        Case{"@dataclass\nclass K:\n  n: str\n  s: str\nk = K('cuda_x', 'cudaFree(p);')\n"
             "f(cpp_sources=k.s)\n",
             "@dataclass\nclass K:\n  n: str\n  s: str\nk = K('cuda_x', 'musaFree(p);')\n"
             "f(cpp_sources=k.s)\n"},
        Case{"D = {'a': 'cudaFree(p);'}\nfor v in D.values():\n  T += v\nload_inline('x', T)\n",
             "D = {'a': 'musaFree(p);'}\nfor v in D.values():\n  T += v\nload_inline('x', T)\n"},
        Case{"A = 'cudaFree(p);'\nf(cpp_sources=f'{A}{1}')\n",
             "A = 'musaFree(p);'\nf(cpp_sources=f'{A}{1}')\n"},
        Case{"A = 'cudaFree(p);'\nf(message=A)\n", "A = 'cudaFree(p);'\nf(message=A)\n"}));

TEST(Port, ReportsANameOfCudaThatContainsAReplacementField) {
  const Port port = to_musa("f(cpp_sources=f'cuda{what}(p);')\n", Language::kPython);
  ASSERT_THAT(port.remnants, SizeIs(1));
  EXPECT_THAT(port.remnants[0].message, HasSubstr("cuda"));
}

TEST(Port, LeavesTheCppOfAModuleUnchangedIfRequested) {
  PortOptions options;
  options.embedded = Embedded::kLiterals;
  const std::string text = "S = '#include <cuda.h>'\nx.to('cuda')\nload_inline('x', S)\n";
  EXPECT_EQ(to_musa(text, Language::kPython, options).text,
            "S = '#include <cuda.h>'\nx.to('musa')\nload_inline('x', S)\n");
}

class MusaName : public ::testing::TestWithParam<Case> {};

TEST(Port, LeavesANameOfMusaUnchanged) {
  const std::string text = "at::musa::gpuAtomicAdd(p, v);";
  EXPECT_EQ(port_source(text, Language::kCpp, rules_to(Target::kMusa), {}).text, text);
}

// Names of MUSA that a port from CUDA never produces, and their port to CUDA.
TEST_P(MusaName, HasAPortToCuda) {
  const Port port = port_source(GetParam().musa, Language::kCpp, rules_to(Target::kCuda), {});
  EXPECT_EQ(port.text, GetParam().cuda);
  EXPECT_THAT(port.remnants, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, MusaName,
    ::testing::Values(Case{"x.to(at::kCUDA);", "x.to(at::musa::kMUSA);"},
                      Case{"v = WARP_SHFL(v, 0);", "v = at::musa::WARP_SHFL(v, 0);"},
                      Case{"f(kCUDA);", "f(kMUSA);"}, Case{"x.is_cuda();", "x.is_musa();"},
                      Case{"TORCH_LIBRARY(my_musa_ops, m) {}", "TORCH_LIBRARY(my_musa_ops, m) {}"},
                      Case{"template <int musa_block> void f();",
                           "template <int musa_block> void f();"},
                      Case{"my_musa::run(x_musa);", "my_musa::run(x_musa);"}));

TEST(Port, ReportsANameOfMusaThatNoRuleKnows) {
  const Rules& rules = rules_to(Target::kCuda);
  EXPECT_THAT(port_source("__musa_f(1);", Language::kCpp, rules, {}).remnants, SizeIs(1));
  EXPECT_THAT(port_source("from torch_musa.core import f\n", Language::kPython, rules, {}).remnants,
              SizeIs(1));
}

TEST(Port, DropsFlagsThatMccDoesNotSupportAndReportsTheLoss) {
  const std::string text =
      "f(cuda_sources=a, extra_cuda_cflags=['-arch=sm_90', '-std=c++17', '-O3', '-lineinfo'])\n";
  const Port port = to_musa(text, Language::kPython);
  EXPECT_EQ(port.text, "f(musa_sources=a, extra_musa_cflags=[\"--offload-arch=mp_31\", '-O3'])\n");
  EXPECT_TRUE(first_loss(text, port, Language::kPython, rules_to(Target::kCuda), {}));
}

TEST(Port, DropsAKeywordThatTorchMusaDoesNotHave) {
  EXPECT_EQ(to_musa("f(a, no_implicit_headers=True, b=1)\n", Language::kPython).text,
            "f(a, b=1)\n");
}

TEST(Port, AddsTheRequestedArchitecture) {
  PortOptions options;
  options.architecture = "mp_22";
  EXPECT_THAT(to_musa("f(cuda_sources=a)\n", Language::kPython, options).text,
              HasSubstr("--offload-arch=mp_22"));
}

TEST(Port, ReportsAChangeWithItsPositionInThePythonFile) {
  const Port port = to_musa("s = r'''\n#include <x.h>\n  cudaFree(p);\n'''\n", Language::kPython);
  ASSERT_THAT(port.changes, SizeIs(1));
  EXPECT_EQ(port.changes[0].location.line, 3U);
  EXPECT_EQ(port.changes[0].location.column, 3U);
  EXPECT_EQ(port.changes[0].before, "cudaFree");
  EXPECT_EQ(port.changes[0].after, "musaFree");
  EXPECT_EQ(port.changes[0].rule, "runtime");
}

TEST(Port, KeepsTheNameOfAFunctionThatPythonCalls) {
  const std::string text =
      "s = 'torch::Tensor cudaAdd(torch::Tensor x) { return x; }'\nm.cudaAdd(x)\n";
  const Port port = to_musa(text, Language::kPython);
  EXPECT_EQ(port.text, text);
  EXPECT_EQ(port.status(), Port::Status::kUnchanged);
}

TEST(Port, IsPartialIfNoRuleKnowsAName) {
  const Port port = to_musa("int x = MY_CUDA_THING;\n", Language::kCpp);
  ASSERT_THAT(port.remnants, SizeIs(1));
  EXPECT_THAT(port.remnants[0].message, HasSubstr("MY_CUDA_THING"));
  EXPECT_EQ(port.status(), Port::Status::kPartial);
}

TEST(Port, IsPartialIfAThresholdHasNoCounterpart) {
  const Port port = to_musa("#if __CUDA_ARCH__ >= 530\n#endif\n", Language::kCpp);
  ASSERT_THAT(port.remnants, SizeIs(1));
  EXPECT_THAT(port.remnants[0].message, HasSubstr("530"));
}

TEST(Port, LeavesTheDeviceTypeOfACaseLabelUnchanged) {
  EXPECT_EQ(to_musa("case c10::DeviceType::CUDA:", Language::kCpp).status(),
            Port::Status::kPartial);
}

TEST(Port, KnowsNamesAndFilesOfTheSameRun) {
  PortOptions options;
  options.project.names = {"MY_CUDA_THING"};
  options.project.files = {"mine.cuh"};
  const Port port =
      to_musa("#include \"a/mine.cuh\"\nint x = MY_CUDA_THING;\n", Language::kCpp, options);
  EXPECT_EQ(port.text, "#include \"a/mine.muh\"\nint x = MY_CUDA_THING;\n");
  EXPECT_EQ(port.status(), Port::Status::kPorted);
}

TEST(Port, LeavesAFileOfTheSameRunWithTheNameOfAHeader) {
  PortOptions options;
  options.project.files = {"cuda.h"};
  const Port port = to_musa("#include \"cuda.h\"\n#include <cuda.h>\n", Language::kCpp, options);
  EXPECT_EQ(port.text, "#include \"cuda.h\"\n#include <musa.h>\n");
}

class Refused : public ::testing::TestWithParam<Case> {};

TEST_P(Refused, NamesTheRuleAndTheLineAndChangesNothing) {
  const std::string text = std::string("cudaFree(p);\n") + GetParam().cuda;
  const Port port = to_musa(text, Language::kCpp);
  ASSERT_THAT(port.refusals, SizeIs(1));
  EXPECT_EQ(port.refusals[0].rule, GetParam().musa);
  EXPECT_EQ(port.refusals[0].location.line, 2U);
  EXPECT_EQ(port.text, text);
  EXPECT_EQ(port.status(), Port::Status::kRefused);
}

INSTANTIATE_TEST_SUITE_P(All, Refused,
                         ::testing::Values(Case{"asm volatile(\"nop;\");", "ptx"},
                                           Case{"asm(\"LAB: nop;\");", "ptx"},
                                           Case{"#include <cuda/barrier>\n", "libcudacxx"},
                                           Case{"#include <cute/tensor.hpp>\n", "cutlass"},
                                           Case{"cudaLaunchAttribute a[1];", "launch_attributes"}));

TEST(Port, DoesNotRefuseNamesInAComment) {
  EXPECT_THAT(to_musa("// asm, cutlass\n", Language::kCpp).refusals, IsEmpty());
}

TEST(Port, DoesNotRefuseAProjectFolderNamedCuda) {
  const Port port = to_musa("#include \"cuda/ops.h\"\n", Language::kCpp);
  EXPECT_THAT(port.refusals, IsEmpty());
  EXPECT_THAT(port.remnants, SizeIs(1));  // No file of the run has this name.
  PortOptions options;
  options.project.files = {"ops.h"};
  EXPECT_EQ(to_musa("#include \"cuda/ops.h\"\n", Language::kCpp, options).status(),
            Port::Status::kUnchanged);
}

// The texts contain MUSA's own assembly, or only a compiler barrier.
TEST(Port, DoesNotRefuseAssemblyWithoutPtx) {
  for (const char* text : {"asm volatile(\"LSU.LD.B128 %0, %1\" : \"=R\"(v) : \"R\"(x));",
                           "asm volatile(\"\" ::: \"memory\");"}) {
    EXPECT_THAT(to_musa(text, Language::kCpp).refusals, IsEmpty()) << text;
  }
  const Rules& back = rules_to(Target::kCuda);
  EXPECT_THAT(port_source("asm(\"LSU.LD %0\");", Language::kCpp, back, {}).remnants, SizeIs(1));
  EXPECT_THAT(port_source("asm(\"\");", Language::kCpp, back, {}).remnants, IsEmpty());
}

TEST(Port, LeavesHeadersThatTorchMusaKeepsUnderNamesOfCuda) {
  const std::string text =
      "#include \"torch_musa/share/generated_cuda_compatible/x/Atomics.muh\"\n";
  EXPECT_EQ(to_musa(text, Language::kCpp).status(), Port::Status::kUnchanged);
  const Rules& back = rules_to(Target::kCuda);
  EXPECT_THAT(port_source(text, Language::kCpp, back, {}).remnants, SizeIs(1));
}

class WideWarp : public ::testing::TestWithParam<const char*> {};

TEST_P(WideWarp, CausesAWarningOnlyIfWarpsAreWide) {
  PortOptions options;
  options.architecture = "mp_22";
  EXPECT_THAT(to_musa(GetParam(), Language::kCpp, options).warnings, SizeIs(1));
  EXPECT_THAT(to_musa(GetParam(), Language::kCpp).warnings, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, WideWarp,
    ::testing::Values("int l = t % 32; v = __shfl_sync(0xffffffff, v, 0);",
                      "int l = t & 31; v = __shfl_xor_sync(0xffffffffu, v, 1);",
                      "unsigned b = __ballot_sync(0xffffffff, p);",
                      "if (t % 32 == 0) n += __reduce_add_sync(0xffffffff, p);",
                      "int l = t % 32; __syncwarp();", "v = __shfl_down_sync(0x0000ffff, v, 8);"));

TEST(Port, DoesNotWarnAboutAShuffleWithAWidth) {
  PortOptions options;
  options.architecture = "mp_22";
  EXPECT_THAT(to_musa("v = __shfl_sync(0xffffffff, v, 0, 32);", Language::kCpp, options).warnings,
              IsEmpty());
}

TEST(RoundTrip, RestoresEveryHonestCandidateExceptDroppedFlags) {
  std::set<std::string> lossy;
  for (const fs::path& path : honest_candidates()) {
    const std::string text = read(path);
    const Port port = to_musa(text, Language::kPython);
    EXPECT_EQ(port.status(), Port::Status::kPorted) << path;
    if (to_cuda(port.text, Language::kPython) != text) lossy.insert(path.stem());
  }
  // A port of this candidate drops the flag --expt-relaxed-constexpr.
  EXPECT_THAT(lossy, ElementsAre("rms_norm"));
}

TEST(RoundTrip, FindsEveryLoss) {
  for (const fs::path& path : honest_candidates()) {
    const std::string text = read(path);
    const Port port = to_musa(text, Language::kPython);
    const bool is_lossless = to_cuda(port.text, Language::kPython) == text;
    EXPECT_EQ(is_lossless, !first_loss(text, port, Language::kPython, rules_to(Target::kCuda), {}));
  }
}

// Pieces of CUDA source whose port is reversible, in a random order.
std::string snippet(std::mt19937& random) {
  static const std::vector<std::string> kPieces = {
      "#include <cuda_runtime.h>\n",
      "#include <c10/cuda/CUDAGuard.h>\n",
      "#if __CUDA_ARCH__ >= 800\n#endif\n",
      "// cudaFree(x) of CUDA\n",
      "cudaStream_t s = at::cuda::getCurrentCUDAStream();\n",
      "k<<<g, b, 0, s>>>(p);\n",
      "C10_CUDA_KERNEL_LAUNCH_CHECK();\n",
      "int cudaCores = 3;\n",
      "f(cudaCores, CUBLAS_OP_T, x.is_cuda());\n",
      "__nv_bfloat16 v = __float2bfloat16(1.0f);\n",
      "std::string name = \"cuda:1\"; auto text = R\"(cudaFree)\";\n",
      "torch::zeros({1}, torch::kCUDA);\n",
      "cuMemAlloc(&d, CU_LIMIT); CUdeviceptr d;\n",
      "\\\n /* __nv_bfloat16 */ curandState *r;\n"};
  std::uniform_int_distribution<std::size_t> piece(0, kPieces.size() - 1);
  std::string text;
  for (int i = 0; i < 12; ++i) text += kPieces[piece(random)];
  return text;
}

TEST(RoundTrip, RestoresGeneratedSnippets) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const std::string cpp = snippet(random);
    EXPECT_EQ(to_cuda(to_musa(cpp, Language::kCpp).text, Language::kCpp), cpp) << seed;
    const std::string python =
        "import torch\nS = r'''\n" + cpp + "'''\nload_inline('x', cuda_sources=[S])\n";
    const Port port = to_musa(python, Language::kPython);
    EXPECT_THAT(port.remnants, IsEmpty()) << seed;
    EXPECT_EQ(to_cuda(port.text, Language::kPython), python) << seed;
  }
}

std::string message(std::string_view text) { return port_message(text, rules_to(Target::kMusa)); }

TEST(Message, HasTheNamesOfTheTarget) {
  EXPECT_EQ(message("cuda_runtime.h: No such file"), "musa_runtime.h: No such file");
  EXPECT_EQ(message("'cudaFre' is not declared; did you mean 'cudaFree'?"),
            "'musaFre' is not declared; did you mean 'musaFree'?");
  EXPECT_EQ(message("in at::cuda::f, c10/cuda/CUDAGuard.h"),
            "in at::musa::f, torch_musa/csrc/core/MUSAGuard.h");
  EXPECT_EQ(message("x is on cuda:0, call x.cuda() or torch.cuda"),
            "x is on musa:0, call x.musa() or torch.musa");
  EXPECT_EQ(message("keyword 'cuda_sources', CUDA's own"), "keyword 'musa_sources', MUSA's own");
  EXPECT_EQ(message("line 3: (unclosed \"quote\n"), "line 3: (unclosed \"quote\n");
}

struct Import {
  const char* musa;
  const char* cuda;
};
class BoundModule : public ::testing::TestWithParam<Import> {};

TEST_P(BoundModule, KeepsItsNameIfLinesStay) {
  PortOptions options;
  options.lines = Lines::kStay;
  const Port port =
      port_source(GetParam().musa, Language::kPython, rules_to(Target::kCuda), options);
  EXPECT_EQ(port.text, GetParam().cuda);
  EXPECT_THAT(port.remnants, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, BoundModule,
    ::testing::Values(
        Import{"import torch as t, torch_musa\ntorch_musa.synchronize()\n",
               "import torch as t, torch.cuda as torch_musa\ntorch_musa.synchronize()\n"},
        Import{"import torch_musa as tm\ntm.utils.musa_extension.load\ntm.synchronize()\n",
               "import torch.cuda as tm\ntorch.utils.cpp_extension.load\ntm.synchronize()\n"},
        Import{"import importlib, os\nm = importlib.import_module('torch_musa')\n",
               "import torch, os\nm = torch.cuda\n"},
        Import{"import importlib.util\nif importlib.util.find_spec('torch_musa'): pass\n",
               "import torch\nif torch.cuda: pass\n"},
        Import{"import importlib\nimportlib.import_module('torch_musa')\nimportlib.reload(x)\n",
               "import importlib\ntorch.cuda\nimportlib.reload(x)\n"},
        Import{"__import__('torch_musa')\n", "torch.cuda\n"}));

TEST(Lines, StayIfRequested) {
  PortOptions options;
  options.lines = Lines::kStay;
  const Port port = port_source("import torch\nimport torch_musa\nx.musa()\n", Language::kPython,
                                rules_to(Target::kCuda), options);
  EXPECT_EQ(port.text, "import torch\nimport torch.cuda as torch_musa\nx.cuda()\n");
}

TEST(Port, EqualsTheGoldenFile) {
  const fs::path golden = kRoot / "tests/golden/musify_rms_norm.txt";
  const std::string port =
      to_musa(read(kRoot / "tests/corpus/honest/normalisation/rms_norm.py"), Language::kPython)
          .text;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    fs::create_directories(golden.parent_path());
    std::ofstream(golden, std::ios::binary) << port;
  }
  EXPECT_EQ(port, read(golden));
}

// ---- Any text -----------------------------------------------------------------------------------

void check_both(const std::string& text) {
  check_properties(text, rules_to(Target::kMusa));
  check_properties(text, rules_to(Target::kCuda));
}

TEST(AnyText, KeepsTheProperties) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    check_both(lex::random_text(seed, 60));
  }
}

// The inputs are candidates with random bytes deleted and inserted.
TEST(AnyText, KeepsThePropertiesNearCandidates) {
  std::mt19937 random(7);
  for (const auto& entry : fs::directory_iterator(kRoot / "tests/corpus/warp128")) {
    if (entry.path().extension() != ".py") continue;
    SCOPED_TRACE(entry.path());
    for (int i = 0; i < 20; ++i) {
      std::string text = read(entry.path());
      for (int k = 0; k < 3; ++k) {
        const std::size_t at = random() % text.size();
        const std::size_t size = random() % 40;
        if (random() % 2 == 0) {
          text.erase(at, size);
        } else {
          text.insert(at, text.substr(random() % text.size(), size));
        }
      }
      check_both(text);
    }
  }
}

}  // namespace
}  // namespace mc::musify
