// SPDX-License-Identifier: Apache-2.0
#include "task/provenance.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace mc::task {
namespace {

TEST(Provenance, NamesTheProgramAndTheImage) {
  ::setenv("MUSACODER_IMAGE", "registry/musacoder:\"1\"\n\xff", 1);
  EXPECT_EQ(provenance_json(), R"({"program":"musacoder 0.1.0","image":"registry/musacoder:\"1\"\n)"
                               "\xef\xbf\xbd\"}");
  ::unsetenv("MUSACODER_IMAGE");
  EXPECT_EQ(provenance_json(), R"({"program":"musacoder 0.1.0","image":""})");
}

}  // namespace
}  // namespace mc::task
