// SPDX-License-Identifier: Apache-2.0
#include "legality/static_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "legality/policy.h"

namespace mc::legality {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Policy& default_policy() {
  static const Policy kPolicy =
      load_policy(std::filesystem::path(MC_SOURCE_DIR) / "data/policy", "musacoder").value();
  return kPolicy;
}

// "rule word@line" of each finding in one source.
std::vector<std::string> found(const std::string& text) {
  std::vector<std::string> list;
  for (const task::RuleFinding& finding : check_sources(default_policy(), {{"cuda", text}})) {
    list.push_back(finding.rule + " " + finding.message.substr(0, finding.message.find(": ")) +
                   "@" + std::to_string(finding.location.line));
  }
  return list;
}

struct Row {
  std::string source;
  std::string finding;
};

class Forbidden : public ::testing::TestWithParam<Row> {};

TEST_P(Forbidden, IsFoundWithItsRule) {
  EXPECT_THAT(found(GetParam().source), ElementsAre(GetParam().finding)) << GetParam().source;
}

INSTANTIATE_TEST_SUITE_P(
    TorchCompute, Forbidden,
    ::testing::Values(
        Row{"auto y = at::matmul(a, b);", "cpp.tensor_compute matmul@1"},
        Row{"auto y = ::torch::relu_(a);", "cpp.tensor_compute relu_@1"},
        Row{"return torch::softmax(a, 1);", "cpp.tensor_compute softmax@1"},
        Row{"at::add_out(y, a, b);", "cpp.tensor_compute add_out@1"},
        Row{"auto f = &at::mm;", "cpp.tensor_compute mm@1"},
        Row{"void f(torch::Tensor x) {\n  x.mm(x); }", "cpp.tensor_compute mm@2"},
        Row{"void f(const at::Tensor& x) { y = x.contiguous().view({1}).sum(); }",
            "cpp.tensor_compute sum@1"},
        Row{"void f() { auto y = torch::zeros({1}); y.add_(1); }", "cpp.tensor_compute add_@1"},
        Row{"void f(Tensor x) { auto y = x.view({1}); y.exp(); }", "cpp.tensor_compute exp@1"},
        Row{"void f(Tensor x) { matmul(x, x); }", "cpp.tensor_compute matmul@1"},
        Row{"#define MM(a) at::mm(a, a)\n", "cpp.tensor_compute mm@1"},
        Row{"at::native::mm_cpu(a);", "cpp.torch_internals at@1"},
        Row{"at::_ops::mm::call(a, b);", "cpp.torch_internals at@1"},
        Row{"namespace F = torch::nn::functional;", "cpp.torch_internals torch@1"},
        Row{"c10::Dispatcher::singleton();", "cpp.torch_internals c10@1"}));

INSTANTIATE_TEST_SUITE_P(Libraries, Forbidden,
                         ::testing::Values(Row{"cublasCreate(&h);",
                                               "cpp.vendor_library cublasCreate@1"},
                                           Row{"at::cuda::getCurrentCUDABlasHandle();",
                                               "cpp.vendor_library getCurrentCUDABlasHandle@1"},
                                           Row{"cutlass::gemm::device::Gemm<float> g;",
                                               "cpp.vendor_library cutlass@1"}));

INSTANTIATE_TEST_SUITE_P(
    System, Forbidden,
    ::testing::Values(Row{"void* h = dlopen(\"x\", 1);", "cpp.dynamic_loading dlopen@1"},
                      Row{"extern \"C\" int system(const char*);\nint i = system(\"ls\");",
                          "cpp.process system@2"},
                      Row{"std::system(\"ls\");", "cpp.process system@1"},
                      Row{"if (a) ::fork();", "cpp.process fork@1"},
                      Row{"return fork();", "cpp.process fork@1"},
                      Row{"std::thread t(f);", "cpp.process std@1"},
                      Row{"struct system {}; int i = ::system(\"ls\");", "cpp.process system@1"},
                      Row{"int s = socket(1, 2, 3);", "cpp.network socket@1"},
                      Row{"mmap(0, 1, 2, 3, 4, 5);", "cpp.files mmap@1"},
                      Row{"std::ifstream in(\"/proc/self/maps\");", "cpp.files std@1"},
                      Row{"getenv(\"X\");", "cpp.environment getenv@1"},
                      Row{"py::module_::import(\"torch\");", "cpp.python py@1"},
                      Row{"PyRun_SimpleString(\"x\");", "cpp.python PyRun_SimpleString@1"}));

class Honest : public ::testing::TestWithParam<std::string> {};

TEST_P(Honest, WordsThatResembleForbiddenOnesPass) {
  EXPECT_THAT(found(GetParam()), IsEmpty()) << GetParam();
}

INSTANTIATE_TEST_SUITE_P(
    Words, Honest,
    ::testing::Values("// at::matmul(a, b); system(\"ls\")\n/* cublasSgemm dlopen() */",
                      "const char* s = \"at::matmul(a) cublasSgemm system(\";",
                      "R\"(torch::relu(x); fork();)\"",
                      "try { TORCH_CHECK(x.dim() == 2); } catch (const c10::Error& e) { throw; }",
                      "struct matmul { float operator()(float a); }; matmul m; m(1); matmul(2);",
                      "torch::Tensor softmax_forward(torch::Tensor x) { return x; }",
                      "torch::Tensor relu(torch::Tensor x) { return x; }\n"
                      "void f(Tensor x) { relu(x); }",
                      "auto softmax = [&](Tensor x) { return 1; }; Tensor x; softmax(x);",
                      "#define system(x) my_##x\nvoid f() { system(1); }",
                      "__device__ float relu(float x) { return std::max(x, 0.f) + std::exp(x); }",
                      "float y = std::exp(x) + sqrtf(x) + ::exp(x) + at::opmath(x);",
                      "int cublas_like = 0, cudnn_style_kernel = 1; namespace cublas {}",
                      "void connect(int a) {} void g() { connect(1); socket_kind s; }",
                      "graph.connect(1); node->kill(); my::system(2);",
                      "#include <cublas_v2.h>\n#include <dlfcn.h>\n#include <fstream>\n",
                      "static cublasHandle_t handle; cudnnStatus_t status;"));

INSTANTIATE_TEST_SUITE_P(
    Members, Honest,
    ::testing::Values(
        "Stats s; s.sum(); s.max(); s.mean(); s.matmul(3); p->softmax();",
        "template <typename T> __global__ void k(T x) { x.add(1); x.max(); }\n"
        "void f(torch::Tensor x) {}",
        "void f(Tensor x) { auto n = x.size(0); n.add(1); auto s = x.sizes(); s.max(); }",
        "void f(Tensor x) { x.data_ptr<float>(); x.options().dtype(torch::kFloat); x.dim(); }",
        "void f(std::vector<torch::Tensor> outputs) { outputs.max(); }"));

INSTANTIATE_TEST_SUITE_P(
    Surface, Honest,
    ::testing::Values(
        "void f(torch::Tensor x) {\n"
        "  auto y = torch::empty_like(x); auto z = torch::zeros({x.size(0)}, x.options());\n"
        "  y = x.contiguous().view({-1}).reshape({2}).permute({0}).transpose(0, "
        "1).to(torch::kHalf);\n"
        "  y.fill_(0); y.zero_(); y.copy_(x); z = at::full({1}, 2); z = torch::ones({1});\n"
        "  TORCH_CHECK(x.is_cuda() && x.scalar_type() == at::kFloat && x.numel() > 0);\n"
        "  at::cuda::getCurrentCUDAStream(); c10::cuda::CUDAGuard g(x.device());\n"
        "  y = torch::zeros_like(x); y = x.new_zeros({1}); y = x.t().narrow(0, 1, 2).view_as(y);\n"
        "  auto parts = x.chunk(2, 0); y = torch::arange(3); y.normal_(); y = x.cpu().type_as(y);\n"
        "  at::ceil_div(1, 2); torch::Device d(torch::kCUDA); x.stride(0); x.item<float>();\n"
        "}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"softmax\", &f, \"softmax\"); }"));

TEST(CheckSources, ReportsTheLocationAndTheLine) {
  const auto findings =
      check_sources(default_policy(),
                    {{"cpp_sources[0]", "int a;"}, {"cuda_sources[0]", "\n  x = at::mm(a, b);"}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].location.source, "cuda_sources[0]");
  EXPECT_EQ(findings[0].location.line, 2);
  EXPECT_EQ(findings[0].location.column, 11);
  EXPECT_EQ(findings[0].location.excerpt, "x = at::mm(a, b);");
}

TEST(CheckSources, AcceptsADefinitionInAnotherSource) {
  const std::string declaration =
      "torch::Tensor relu(torch::Tensor x);\nvoid f(Tensor x) { relu(x); }";
  const std::string definition = "torch::Tensor relu(torch::Tensor x) { return x; }";
  EXPECT_THAT(check_sources(default_policy(), {{"cpp", declaration}, {"cuda", definition}}),
              IsEmpty());
  EXPECT_EQ(check_sources(default_policy(), {{"cpp", declaration}}).size(), 1U);
}

TEST(CheckSources, BoundsTheNumberOfFindings) {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "cublasCall" + std::to_string(i) + "();\n";
  EXPECT_EQ(check_sources(default_policy(), {{"cuda", text}}).size(), kFindingsMax);
}

TEST(CheckSources, NamesEachWordOnce) {
  EXPECT_THAT(found("fork();\nfork();\nfork();"), ElementsAre("cpp.process fork@1"));
}

}  // namespace
}  // namespace mc::legality
