// SPDX-License-Identifier: Apache-2.0
#include "compile/cpu_lacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class CpuLacks : public ::testing::Test {
 protected:
  CpuLacks() : folder_(TemporaryDirectory::create("mc-lacks-test").value()) {
    const auto list = folder_.path() / "names";
    EXPECT_TRUE(write_file_atomically(list,
                                      "# Names.\n[headers]\ncuda_fp6.h\n[global]\ncudaDeviceProp\n"
                                      "cudaTextureObject_t\ntex1Dfetch\n[scoped]\nWarpMergeSort\n"
                                      "fragment\n[members]\nluid\n"));
    const auto include = folder_.path() / "include";
    const auto own = folder_.path() / "own";
    EXPECT_TRUE(fs::create_directories(include / "c10/cuda"));
    EXPECT_TRUE(fs::create_directories(own / "c10/cuda"));
    EXPECT_TRUE(write_file_atomically(include / "c10/cuda/s.h", "getCurrentStream onlyPyTorchs"));
    EXPECT_TRUE(write_file_atomically(own / "c10/cuda/s.h", "getCurrentStream"));
    names_ = CudaNames::read(list, {include}, own).value();
  }

  void add(const std::string& message, const std::string& line, int number = 1) {
    diagnostics_.push_back({"error", message, {"candidate", number, 1, line}});
  }
  // The lacks, by the names that the messages quote.
  std::vector<std::string> lacks(std::vector<std::string> headers = {},
                                 const std::vector<task::RuleFinding>& constructs = {}) const {
    std::vector<std::string> found;
    for (const auto& construct :
         lacks_of(diagnostics_, {extension_, constructs, headers}, names_).constructs) {
      const std::string& message = construct.message;
      const size_t begin = message.find('\'');
      found.push_back(begin == std::string::npos
                          ? message
                          : message.substr(begin + 1, message.find('\'', begin + 1) - begin - 1));
    }
    return found;
  }

  TemporaryDirectory folder_;
  CudaNames names_;
  Extension extension_;
  std::vector<task::Diagnostic> diagnostics_;
};

TEST_F(CpuLacks, AreNamesThatCudaHas) {
  add("'tex1Dfetch' was not declared in this scope", "float v = tex1Dfetch<float>(t, i);");
  EXPECT_THAT(lacks(), ElementsAre("tex1Dfetch"));
}

TEST_F(CpuLacks, AreNotNamesThatNobodyHas) {
  add("'tex1Dfetsch' was not declared in this scope; did you mean 'tex1Dfetch'?",
      "float v = tex1Dfetsch<float>(t, i);");
  EXPECT_THAT(lacks(), IsEmpty());
}

TEST_F(CpuLacks, ExplainWhatFollowsFromThem) {
  add("'cudaTextureObject_t' was not declared in this scope", "cudaTextureObject_t object = 0;", 1);
  add("expected ';' before 'object'", "cudaTextureObject_t object = 0;", 1);
  add("'object' was not declared in this scope", "read<<<1, 2>>>(object, y);", 5);
  EXPECT_THAT(lacks(), ElementsAre("cudaTextureObject_t"));
}

TEST_F(CpuLacks, DoNotExcuseAnErrorOfAnotherKind) {
  add("'tex1Dfetch' was not declared in this scope", "float v = tex1Dfetch<float>(t, i);", 1);
  add("'missing' was not declared in this scope", "y[i] = v * missing;", 2);
  EXPECT_THAT(lacks(), IsEmpty());
  diagnostics_.pop_back();
  add("cannot convert 'float*' to 'int'", "int k = y;", 3);
  EXPECT_THAT(lacks(), IsEmpty());
}

TEST_F(CpuLacks, OfALibraryAreNamedWithTheLibrary) {
  add("'fragment' was not declared in this scope", "fragment<int> f;");
  EXPECT_THAT(lacks(), IsEmpty());
  EXPECT_THAT(lacks({"mma.h"}), ElementsAre("fragment"));
  extension_.cuda_sources = {"#include <mma.h>\nusing namespace nvcuda;\n"};
  EXPECT_THAT(lacks(), ElementsAre("fragment"));
  diagnostics_.clear();
  extension_.cuda_sources = {"#include <cub/cub.cuh>\n"};
  add("'WarpMergeSort' is not a member of 'cub'", "using S = cub::WarpMergeSort<int, 4>;");
  EXPECT_THAT(lacks(), ElementsAre("WarpMergeSort"));
}

TEST_F(CpuLacks, AreNotLibrariesWhoseHeaderIsForgotten) {
  add("'cooperative_groups' has not been declared", "namespace cg = cooperative_groups;", 1);
  add("'cg' has not been declared", "auto block = cg::this_thread_block();", 2);
  EXPECT_THAT(lacks(), IsEmpty());
  extension_.cuda_sources = {"# include <cooperative_groups/reduce.h>\n"};
  EXPECT_THAT(lacks(), ElementsAre("cooperative_groups", "cg"));
  diagnostics_.clear();
  extension_.cuda_sources = {"using namespace nvcuda;\n"};
  add("'nvcuda' is not a namespace-name", "using namespace nvcuda;", 1);
  add("'wmma' has not been declared", "wmma::fragment<int> f;", 2);
  EXPECT_THAT(lacks(), IsEmpty());
}

TEST_F(CpuLacks, AreMembersOfCudasStructures) {
  add("'struct cudaDeviceProp' has no member named 'luid'", "int u = p.luid[0];");
  EXPECT_THAT(lacks(), ElementsAre("luid"));
  diagnostics_.clear();
  add("'struct Mine' has no member named 'luid'", "int u = p.luid[0];");
  EXPECT_THAT(lacks(), IsEmpty());
}

TEST_F(CpuLacks, AreNotMembersThatATypeOfOthersDoesNotHave) {
  add("'class std::tuple<at::Tensor, cudaDeviceProp>' has no member named 'luid'", "t.luid;");
  EXPECT_THAT(lacks(), IsEmpty());
  diagnostics_.clear();
  add("'Mine' {aka 'struct cudaDeviceProp'} has no member named 'luid'", "p.luid;");
  EXPECT_THAT(lacks(), ElementsAre("luid"));
}

TEST_F(CpuLacks, AreNotPyTorchsNamesWhoseIncludeIsForgotten) {
  add("'getCurrentStream' is not a member of 'at::cuda'", "at::cuda::getCurrentStream();");
  EXPECT_THAT(lacks(), IsEmpty());
  diagnostics_.clear();
  add("'onlyPyTorchs' is not a member of 'at::cuda'", "at::cuda::onlyPyTorchs();");
  EXPECT_THAT(lacks(), ElementsAre("onlyPyTorchs"));
}

TEST_F(CpuLacks, AreConstructsOnALineThatDoesNotCompile) {
  const std::vector<task::RuleFinding> constructs = {
      {"cpu.unsupported", "CUTLASS and CuTe (cute)", {"candidate", 4, 1, ""}}};
  add("'cute' has not been declared", "auto layout = cute::make_layout(8);", 4);
  EXPECT_THAT(lacks({}, constructs), ElementsAre("CUTLASS and CuTe (cute)"));
}

TEST_F(CpuLacks, KnowsTheHeadersOfCuda) {
  add("cuda_fp6.h: No such file or directory", "#include <cuda_fp6.h>");
  add("mine.h: No such file or directory", "#include <mine.h>");
  EXPECT_THAT(missing_headers(diagnostics_, names_), ElementsAre("cuda_fp6.h"));
}

}  // namespace
}  // namespace mc::compile
