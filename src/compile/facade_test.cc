// SPDX-License-Identifier: Apache-2.0
#include "compile/facade.h"

#include <gtest/gtest.h>

#include <utility>

#include "core/file.h"

namespace mc::compile {
namespace {

class Blame : public ::testing::Test {
 protected:
  Blame() : folder_(TemporaryDirectory::create("mc-facade-test").value()) {
    const auto names = folder_.path() / "names";
    EXPECT_TRUE(write_file_atomically(names,
                                      "CUDAStream\nidentifier\nundefined\nexpression\n"
                                      "\n# Others\nfoo\n"));
    facade_ = Facade::read({}, names).value();
  }
  // The facade's error for one diagnostic in the candidate's own text.
  std::string facade_error(const std::string& message) const {
    return facade_.facade_error({{"error", message, {"candidate", 3, 1, ""}}},
                                LocationMapper("", {}));
  }
  TemporaryDirectory folder_;
  Facade facade_;
};

TEST_F(Blame, IsTheCandidatesWhereItsOwnNamesAreWrong) {
  for (const std::string message :
       {"identifier \"c\" is undefined", "expected an expression", "expected a \";\"",
        "'identifer' was not declared in this scope",
        "expected primary-expression before ')' token", "too few arguments in function call",
        "'forward' was not declared in this scope; did you mean 'std::forward'?",
        "class \"at::Tensor\" has no member \"made_up\"", "'made_up' is not a member of 'at'",
        "'class at::Tensor' has no member named 'made_up'",
        "no suitable constructor exists to convert from \"const float *\" to \"at::Tensor\""}) {
    EXPECT_EQ(facade_error(message), "") << message;
  }
}

TEST_F(Blame, IsTheFacadesWhereItMayLackSomething) {
  for (const std::string message :
       {"identifier \"CUDAStream\" is undefined", "'CUDAStream' was not declared in this scope",
        "namespace \"at\" has no member \"foo\"", "argument types are: (c10::Half, float)",
        "class \"c10::cuda::CUDAStream\" has no member \"made_up\"",
        "no suitable constructor exists to convert from \"c10::Half *\" to \"at::Tensor\"",
        "no operator \"<<\" matches std::ostream", "class \"at::Tensor\" has no member \"foo\""}) {
    EXPECT_EQ(facade_error(message), message);
  }
}

TEST_F(Blame, IsDecidedByTheFirstError) {
  const LocationMapper mapper("", {});
  const task::Diagnostic own{"error", "expected a \";\"", {"candidate", 3, 1, ""}};
  const task::Diagnostic other{"error", "no std::x", {"candidate", 4, 1, ""}};
  EXPECT_EQ(facade_.facade_error({own, other}, mapper), "");
  EXPECT_EQ(facade_.facade_error({other, own}, mapper), other.message);
}

TEST_F(Blame, IsNotTheCandidatesOutsideOfItsText) {
  const std::vector<task::Diagnostic> errors = {{"error", "bad", {"mc_at/tensor.h", 3, 1, ""}}};
  EXPECT_EQ(facade_.facade_error(errors, LocationMapper("", {})), "bad");
}

TEST_F(Blame, IsTheCandidatesWhereItsTextEndsWithinABlock) {
  const LocationMapper mapper("", {});
  EXPECT_EQ(facade_.facade_error({{"error", "expected a \"}\"", {}}}, mapper), "");
  EXPECT_EQ(facade_.facade_error({{"error", "expected '}' at end of input", {}}}, mapper), "");
  EXPECT_EQ(facade_.facade_error({{"error", "expected a \"}\"", {"x.h", 3, 1, ""}}}, mapper),
            "expected a \"}\"");
}

TEST_F(Blame, IsTheCandidatesWherePtxasRefusesItsKernels) {
  const LocationMapper mapper("", {});
  const task::Diagnostic refusal{"error", "ptxas: Arguments mismatch for instruction 'mov'", {}};
  const task::Diagnostic other{"error", "nvcc: Unknown option '--bogus'", {}};
  const task::Diagnostic located{"error", "ptxas: bad", {"mc_at/tensor.h", 3, 1, ""}};
  EXPECT_EQ(facade_.facade_error({refusal}, mapper), "");
  EXPECT_EQ(facade_.facade_error({refusal, other}, mapper), other.message);
  EXPECT_EQ(facade_.facade_error({located}, mapper), located.message);
}

TEST(MissingNames, AreTheNamesInNamespacesEnumeratorsAndMacros) {
  const TemporaryDirectory folder = TemporaryDirectory::create("mc-facade-test").value();
  const auto path = folder.path() / "names";
  const std::string full = R"(
#define MACRO(argument) int of_macro;
namespace outer { inline namespace v1 {
  template <typename Parameter, int number = (1 > 2), class = Vector<Vector<int>>>
  auto function(int argument = other(1)) -> Returned { int local = 1; return local; }
  struct Type { int member; void method(int parameter); enum { kMember }; };
  enum Plain { kFirst, kSecond = 2 };
  enum class Scoped : int { kScoped };
  constexpr int kKnown = 3, kUnknown = 4, H = 5, no = 6;
}}
extern "C" { void in_c(int); })";
  ASSERT_TRUE(write_missing_names(full, "int kKnown;", path));
  const std::string text = '\n' + read_file(path, 1 << 20).value();
  const std::string names = text.substr(0, text.find("\n# Others\n"));
  EXPECT_NE(text.find("\nmethod\n", names.size()), std::string::npos);
  for (const std::string name : {"MACRO", "outer", "function", "Returned", "Type", "Plain",
                                 "kFirst", "kSecond", "Scoped", "kUnknown", "in_c"}) {
    EXPECT_NE(names.find('\n' + name + '\n'), std::string::npos) << name;
  }
  for (const std::string name :
       {"argument", "of_macro", "Parameter", "number", "local", "member", "method", "parameter",
        "kMember", "kScoped", "kKnown", "H", "no"}) {
    EXPECT_EQ(names.find('\n' + name + '\n'), std::string::npos) << name;
  }
}

std::string lacking(const std::string& text) {
  const TemporaryDirectory folder = TemporaryDirectory::create("mc-facade-test").value();
  const auto names = folder.path() / "names";
  EXPECT_TRUE(write_file_atomically(names, "fft\n"));
  EXPECT_TRUE(std::filesystem::create_directories(folder.path() / "roots/mc_at"));
  EXPECT_TRUE(write_file_atomically(folder.path() / "roots/mc_at/tensor.h",
                                    "namespace at { int zeros; } int mc_at_data;"));
  const Facade facade = Facade::read({folder.path() / "roots"}, names).value();
  return facade.lacks({"ext", "ext", {}, {text}, {}, {}, {}, {}, {}});
}

TEST(Lacks, NothingWhereAllNamesAreThere) { EXPECT_EQ(lacking("at::zeros"), ""); }

TEST(Lacks, NothingThatPyTorchLacksToo) {
  EXPECT_EQ(lacking("at::zeroes"), "");
  EXPECT_EQ(lacking("TORCH_CHEK(true)"), "");
  EXPECT_EQ(lacking("at::cuda::made_up()"), "at::cuda::made_up");
}

// Research code includes this header only for torch::Tensor.
TEST(Lacks, NoHeaderThatExtensionsIncludeForTensors) {
  const TemporaryDirectory folder = TemporaryDirectory::create("mc-facade-test").value();
  const auto names = folder.path() / "names";
  ASSERT_TRUE(write_file_atomically(names, ""));
  const Facade facade = Facade::read({MC_SOURCE_DIR "/device/facade/include"}, names).value();
  const auto lacks = [&](const std::string& text) {
    return facade.lacks({"ext", "ext", {}, {text}, {}, {}, {}, {}, {}});
  };
  EXPECT_EQ(lacks("#include <torch/serialize/tensor.h>\nvoid f(at::Tensor x);\n"), "");
  EXPECT_EQ(lacks("#include <torch/serialize/archive.h>\n"), "<torch/serialize/archive.h>");
}

TEST(Lacks, ReportsAMissingNameOrHeader) {
  EXPECT_EQ(lacking("int i = at::fft;"), "at::fft");
  EXPECT_EQ(lacking("#include <ATen/native/x.h>\n"), "<ATen/native/x.h>");
}

TEST(Lacks, ItsOwnNamesWhichPyTorchDoesNotHave) {
  EXPECT_EQ(lacking("mc_at_data"), "mc_at_data");
  EXPECT_EQ(lacking("#include <mc_at/tensor.h>\n"), "<mc_at/tensor.h>");
}

}  // namespace
}  // namespace mc::compile
