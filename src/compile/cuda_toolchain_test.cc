// SPDX-License-Identifier: Apache-2.0
//
// These tests run the real nvcc, where there is one; no device is needed.  PyTorch's headers take a
// minute, so all tests but one change the runtime to do without them.
#include "compile/cuda_toolchain.h"

#include <gmock/gmock.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "compile/cuda_libraries.h"
#include "core/file.h"
#include "core/layout.h"

namespace mc::compile {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr const char* kArchitecture = "90";

std::string key_of(char c) { return std::string(64, c); }

class Cuda : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pytorch = find_pytorch(default_python());
    if (!pytorch) GTEST_SKIP() << "no PyTorch: " << pytorch.error().message;
    auto runtime = find_cuda_runtime(*pytorch, kArchitecture);
    if (!runtime) GTEST_SKIP() << "no nvcc: " << runtime.error().message;
    runtime_ = *runtime;
    auto artifacts = TemporaryDirectory::create("mc-cuda-test");
    ASSERT_TRUE(artifacts) << artifacts.error().message;
    artifacts_ = std::make_unique<TemporaryDirectory>(std::move(*artifacts));
  }

  // Removes PyTorch's headers, except pybind11, which comes with PyTorch.
  void use_plain_headers() {
    runtime_.cuda_prelude = "";
    runtime_.cxx_prelude = "#include <pybind11/pybind11.h>\n";
    std::erase_if(runtime_.link_flags, [](const std::string& flag) {
      return flag.starts_with("-ltorch") || flag.starts_with("-lc10");
    });
  }

  Compiled compile(const Extension& extension) {
    CudaToolchain toolchain(runtime_, artifacts_->path());
    return compile_with(toolchain, extension);
  }

  Compiled compile_with(CudaToolchain& toolchain, const Extension& extension) const {
    const LocationMapper mapper(candidate_, {extension});
    CompileLimits limits{.cpu_s = 600, .memory_bytes = int64_t{8} << 30};
    auto compiled = toolchain.compile(extension, mapper, limits);
    EXPECT_TRUE(compiled) << compiled.error().message;
    return compiled ? std::move(compiled->outcome) : Compiled(task::CompileFailed{});
  }

  Artifact build(const Extension& extension) {
    Compiled compiled = compile(extension);
    if (auto* failed = std::get_if<task::CompileFailed>(&compiled)) {
      for (const auto& entry : failed->diagnostics) ADD_FAILURE() << entry.message;
    }
    auto* artifact = std::get_if<Artifact>(&compiled);
    EXPECT_NE(artifact, nullptr) << compiled.index();
    return artifact != nullptr ? std::move(*artifact) : Artifact{};
  }

  std::vector<task::Diagnostic> errors_of(const Extension& extension) {
    Compiled compiled = compile(extension);
    auto* failed = std::get_if<task::CompileFailed>(&compiled);
    EXPECT_NE(failed, nullptr) << compiled.index();
    return failed != nullptr ? failed->diagnostics : std::vector<task::Diagnostic>{};
  }

  CudaRuntime runtime_;
  std::unique_ptr<TemporaryDirectory> artifacts_;
  std::string candidate_;
};

Extension extension_of(std::vector<std::string> cuda_sources) {
  Extension extension;
  extension.name = "ext";
  extension.key = key_of('a');
  extension.cuda_sources = std::move(cuda_sources);
  return extension;
}

TEST_F(Cuda, CompilesAnExtensionLikeLoadInline) {
  Extension extension = extension_of(
      {"__global__ void add_one(float* y, const float* x, int n) {\n"
       "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
       "  if (i < n) y[i] = x[i] + 1;\n"
       "}\n"
       "torch::Tensor go(torch::Tensor x) {\n"
       "  auto y = torch::empty_like(x);\n"
       "  const int n = x.numel();\n"
       "  add_one<<<(n + 255) / 256, 256>>>(y.data_ptr<float>(), x.data_ptr<float>(), n);\n"
       "  return y;\n"
       "}\n"});
  extension.cpp_sources = {"torch::Tensor go(torch::Tensor x);"};
  extension.functions = {{"go", "go"}};
  extension.extra_cuda_cflags = {"-O3", "--use_fast_math"};
  const Artifact artifact = build(extension);
  EXPECT_TRUE(std::filesystem::exists(artifact.library));
  ASSERT_EQ(artifact.kernels.size(), 1u);
  EXPECT_EQ(artifact.kernels[0].name, "add_one");
  EXPECT_THAT(*artifact.undefined_symbols, Contains(HasSubstr("empty_like")));
  EXPECT_THAT(*artifact.undefined_symbols, Contains(HasSubstr("cudaLaunchKernel")));
}

// Two sources, one of which has its own binding, and a header.
TEST_F(Cuda, CompilesSeveralSourcesAndCachesThem) {
  use_plain_headers();
  Extension extension =
      extension_of({"#include \"scale.cuh\"\n"
                    "template <typename T> __global__ void scale(T* x, T a) {\n"
                    "  __shared__ T tile[128];\n"
                    "  tile[threadIdx.x] = scaled(x[threadIdx.x], a);\n"
                    "  __syncthreads();\n"
                    "  x[threadIdx.x] = tile[threadIdx.x ^ 1];\n"
                    "}\n",
                    "#include <pybind11/pybind11.h>\n"
                    "void go(float* x) { scale<float><<<1, 128>>>(x, 2.f); }\n"
                    "void more() { extern void not_there(); not_there(); }\n"
                    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"more\", &more); }\n"});
  extension.cpp_sources = {""};
  extension.files = {
      {"scale.cuh", "template <typename T> __device__ T scaled(T x, T a) { return a * x; }\n"}};
  const Artifact first = build(extension);
  EXPECT_FALSE(first.cached);
  ASSERT_EQ(first.kernels.size(), 1u);
  EXPECT_EQ(first.kernels[0].kernel, "_Z5scaleIfEvPT_S0_");
  EXPECT_EQ(first.kernels[0].name, "scale<float>");
  EXPECT_EQ(first.kernels[0].shared_bytes, 512);
  EXPECT_GT(first.kernels[0].registers, 0);
  EXPECT_THAT(*first.undefined_symbols, Contains("_Z9not_therev"));

  const Artifact second = build(extension);
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(second.library, first.library);
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_EQ(second.undefined_symbols, first.undefined_symbols);
}

// Kernels in an anonymous namespace, which nvcc renames in each compilation.
TEST_F(Cuda, ReturnsTheSameArtifactToConcurrentThreads) {
  use_plain_headers();
  const Extension extension =
      extension_of({"namespace { __global__ void k(float* x) { x[0] = 1; } }\n"
                    "void go(float* x) { k<<<1, 1>>>(x); }\n"});
  CudaToolchain toolchain(runtime_, artifacts_->path());
  std::array<Compiled, 3> compiled;
  {
    std::vector<std::jthread> threads;
    for (Compiled& one : compiled)
      threads.emplace_back([&] { one = compile_with(toolchain, extension); });
  }
  int compilations = 0;
  for (const Compiled& one : compiled) {
    const auto* artifact = std::get_if<Artifact>(&one);
    ASSERT_NE(artifact, nullptr);
    compilations += artifact->cached ? 0 : 1;
    EXPECT_EQ(artifact->kernels, std::get<Artifact>(compiled[0]).kernels);
    EXPECT_EQ(artifact->kernels.size(), 1u);
  }
  EXPECT_EQ(compilations, 1);
}

TEST_F(Cuda, BindsFunctionsInAUnitOfTheirOwn) {
  use_plain_headers();
  Extension extension = extension_of({"int go(int n) { return n + 1; }\n"});
  extension.cpp_sources = {"int go(int n);"};
  extension.functions = {{"go", "adds one"}};
  const Artifact artifact = build(extension);
  EXPECT_TRUE(artifact.kernels.empty());
  EXPECT_THAT(read_file(artifact.library, size_t{1} << 28).value(),
              HasSubstr("PyInit_" + artifact.module));
}

TEST_F(Cuda, ReportsTheCandidatesOwnLine) {
  use_plain_headers();
  const std::string source =
      "__global__ void k(float* x) {\n"
      "  x[threadIdx.x] = nowhere;\n"
      "}\n";
  candidate_ = "import torch\nsource = '''\n" + source + "'''\n";
  const auto errors = errors_of(extension_of({source}));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].message, "identifier \"nowhere\" is undefined");
  EXPECT_EQ(errors[0].location,
            (task::SourceLocation{"candidate", 4, 20, "  x[threadIdx.x] = nowhere;"}));
}

TEST_F(Cuda, ReportsTheErrorsOfBothCompilers) {
  use_plain_headers();
  Extension extension = extension_of({"#include \"nowhere.cuh\"\n"});
  extension.cpp_sources = {"int go(int n) { return m; }"};
  const auto errors = errors_of(extension);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].location.source, "cpp_sources[0]");
  EXPECT_THAT(errors[1].message, HasSubstr("nowhere.cuh: No such file"));
  EXPECT_EQ(errors[1].location.excerpt, "#include \"nowhere.cuh\"");
}

TEST_F(Cuda, ReportsErrorsOfTheAssembler) {
  use_plain_headers();
  const auto errors =
      errors_of(extension_of({"__global__ void big(float* x) {\n"
                              "  __shared__ float tile[100000];\n"
                              "  tile[threadIdx.x] = x[0];\n"
                              "  __syncthreads();\n"
                              "  x[1] = tile[threadIdx.x ^ 1];\n"
                              "}\n"}));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_THAT(errors[0].message, HasSubstr("Entry function 'big' uses too much shared data"));
}

TEST_F(Cuda, CompilesForTheDevicesOwnInstructions) {
  use_plain_headers();
  const Artifact artifact = build(extension_of(
      {"__global__ void k() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"}));
  EXPECT_EQ(artifact.kernels.size(), 1u);
}

TEST_F(Cuda, CompilesMachineCodeFromSplitText) {
  const auto pytorch = find_pytorch(default_python());
  const auto layout = find_layout();
  ASSERT_TRUE(pytorch && layout);
  const auto added = add_facade(runtime_, *pytorch, *layout, [](std::string_view) {});
  ASSERT_TRUE(added) << added.error().message;
  // A missing nvcc shows that the whole source is not compiled.
  runtime_.nvcc = "/nonexistent/nvcc";
  Extension extension = extension_of(
      {"template <class T, int kBy>\n"
       "__global__ void add(T* x) { x[threadIdx.x] += std::numeric_limits<T>::min() + kBy; }\n"
       "void go(torch::Tensor x) { add<float, 3><<<1, 32>>>(x.data_ptr<float>()); }\n"});
  extension.cpp_sources = {"void go(torch::Tensor x);"};
  extension.functions = {{"go", "go"}};
  extension.extra_cuda_cflags = {"-O3", "--use_fast_math"};
  const Artifact artifact = build(extension);
  ASSERT_EQ(artifact.kernels.size(), 1u);
  EXPECT_THAT(artifact.kernels[0].name, HasSubstr("add<float, 3>"));
  EXPECT_GT(artifact.kernels[0].registers, 0);
}

TEST_F(Cuda, StopsAtTheLimits) {
  use_plain_headers();
  runtime_.facade.reset();  // With stub headers a compilation would end before a limit is noticed.
  const Extension extension =
      extension_of({"#include <pybind11/pybind11.h>\n__global__ void k(long* x) { x[0] = 1; }\n"});
  const LocationMapper mapper("", {extension});
  CudaToolchain toolchain(runtime_, artifacts_->path());
  const auto late = toolchain.compile(extension, mapper, {.cpu_s = 0.1});
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_TRUE(std::holds_alternative<task::TimedOut>(late->outcome)) << late->outcome.index();
  const auto large = toolchain.compile(extension, mapper, {.memory_bytes = 24 << 20});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_TRUE(std::holds_alternative<task::OutOfMemory>(large->outcome)) << large->outcome.index();
}

TEST_F(Cuda, FailsWithoutASource) {
  EXPECT_EQ(errors_of(extension_of({" \n"})).front().message, "the extension has no source");
}

TEST_F(Cuda, RejectsAnInvalidArchitecture) {
  const auto pytorch = find_pytorch(default_python());
  EXPECT_EQ(find_cuda_runtime(*pytorch, "sm_90").error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(find_cuda_runtime(*pytorch, "35").error().code, ErrorCode::kUnavailable);
}

TEST(GencodeFlag, TakesTheDevicesOwnTargetWhereThereIsOne) {
  EXPECT_EQ(gencode_flag("80"), "-gencode=arch=compute_80,code=sm_80");
  EXPECT_EQ(gencode_flag("90"), "-gencode=arch=compute_90a,code=sm_90a");
  EXPECT_EQ(gencode_flag("120"), "-gencode=arch=compute_120a,code=sm_120a");
}

TEST(FindCudaRuntime, SaysWhatToInstall) {
  PyTorch pytorch;
  pytorch.version = "2.11.0+cpu";
  pytorch.root = "/nonexistent/torch";
  const auto runtime = find_cuda_runtime(pytorch, "90");
  ASSERT_FALSE(runtime);
  EXPECT_EQ(runtime.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(runtime.error().message,
              ::testing::AnyOf(HasSubstr("pip install"), HasSubstr("apt-get install")));
}

TEST_F(Cuda, BuildsTheLibrariesOfCandidateProcessesOnce) {
  // A GPU's device process is linked with these stubs; the wheels of the compiler lack them.
  if (!std::filesystem::exists(runtime_.root / "lib64/stubs/libcuda.so")) {
    GTEST_SKIP() << runtime_.root << " has no libraries to link with";
  }
  const auto pytorch = find_pytorch(default_python());
  const auto layout = find_layout();
  ASSERT_TRUE(pytorch && layout);
  // The user's own cache has most of them after `musacoder setup`: each needs up to a minute.
  int made = 0;
  const auto count = [&made](std::string_view) { ++made; };
  const auto libraries = prepare_cuda_libraries(*pytorch, runtime_, *layout, count);
  ASSERT_TRUE(libraries) << libraries.error().message;
  EXPECT_TRUE(std::filesystem::exists(libraries->aten));
  EXPECT_TRUE(std::filesystem::exists(libraries->client));
  EXPECT_LE(made, 3) << "each of the three once";
  made = 0;
  EXPECT_TRUE(prepare_cuda_libraries(*pytorch, runtime_, *layout, count));
  EXPECT_EQ(made, 0) << "the libraries are there";
}

}  // namespace
}  // namespace mc::compile
