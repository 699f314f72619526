// SPDX-License-Identifier: Apache-2.0
#include "forge/course.h"

#include <gtest/gtest.h>

namespace mc::forge {
namespace {

TEST(CudaOf, IsTheOneRawText) {
  EXPECT_EQ(cuda_of("a = r\"\"\"\nint x;\n\"\"\"\nb = \"\"\"y\"\"\"\n"), "\nint x;\n");
}

TEST(CudaOf, IsNothingWhereItIsNotClear) {
  EXPECT_FALSE(cuda_of("a = 1\n").has_value());
  EXPECT_FALSE(cuda_of("a = r\"\"\"int x;\n").has_value());
  EXPECT_FALSE(cuda_of("a = r\"\"\"x\"\"\"\nb = r\"\"\"y\"\"\"\n").has_value());
}

}  // namespace
}  // namespace mc::forge
