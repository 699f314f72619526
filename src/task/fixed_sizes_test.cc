// SPDX-License-Identifier: Apache-2.0
#include "task/fixed_sizes.h"

#include <gtest/gtest.h>

namespace mc::task {
namespace {

constexpr char kModule[] =
    "#define COLS 4096\n"
    "int n = 40960;  // not 4096\n"
    "for (int i = 0; i < 512; ++i) x += 4096.0f;\n"
    "k<<<8, 512>>>(x4096);  # 512\n";

TEST(FixedSizes, AreNumbersOfTheTaskOnTheirLines) {
  const auto places = lines_with_sizes(kModule, {8, 512, 4096});
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0], (SourceLocation{"candidate", 1, 14, "#define COLS 4096"}));
  EXPECT_EQ(places[1].line, 3);
  EXPECT_EQ(places[2].line, 4);
}

TEST(FixedSizes, AreBoundedInNumber) {
  std::string module;
  std::set<int64_t> sizes;
  for (int size = 100; size < 200; ++size) {
    module += "x = " + std::to_string(size) + "\n";
    sizes.insert(size);
  }
  const auto places = lines_with_sizes(module, sizes);
  ASSERT_EQ(places.size(), kFixedSizesMax);
  EXPECT_EQ(places[0].line, 100);
}

}  // namespace
}  // namespace mc::task
