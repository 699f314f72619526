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
    EXPECT_TRUE(write_file_atomically(names, "CUDAStream\nidentifier\nundefined\nexpression\n"));
    facade_ = Facade::read({}, names).value();
  }
  // That of one error in the candidate's own text.
  std::string blamed(const std::string& message) const {
    return facade_.blamed({{"error", message, {"candidate", 3, 1, ""}}}, PlaceMapper("", {}));
  }
  TemporaryDirectory folder_;
  Facade facade_;
};

TEST_F(Blame, IsTheCandidatesWhereItsOwnNamesAreWrong) {
  for (const std::string message :
       {"identifier \"c\" is undefined", "expected an expression", "expected a \";\"",
        "'identifer' was not declared in this scope",
        "expected primary-expression before ')' token", "too few arguments in function call"}) {
    EXPECT_EQ(blamed(message), "") << message;
  }
}

TEST_F(Blame, IsTheFacadesWhereItMayLackSomething) {
  for (const std::string message :
       {"identifier \"CUDAStream\" is undefined", "'CUDAStream' was not declared in this scope",
        "namespace \"at\" has no member \"foo\"", "argument types are: (c10::Half, float)",
        "no operator \"<<\" matches std::ostream", "class \"at::Tensor\" has no member \"foo\""}) {
    EXPECT_EQ(blamed(message), message);
  }
}

TEST_F(Blame, IsNotTheCandidatesOutsideOfItsText) {
  const std::vector<task::Diagnostic> errors = {{"error", "bad", {"mc_at/tensor.h", 3, 1, ""}}};
  EXPECT_EQ(facade_.blamed(errors, PlaceMapper("", {})), "bad");
}

}  // namespace
}  // namespace mc::compile
