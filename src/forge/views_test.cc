// SPDX-License-Identifier: Apache-2.0
#include "forge/views.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace mc::forge {
namespace {

constexpr View kAll[] = {View::kNone, View::kTransposed, View::kEverySecond, View::kWithoutFirst};

// An array whose elements are 0, 1, 2 and so on, of a random shape.
Array counted(std::mt19937& random) {
  Array array;
  size_t count = 1;
  for (size_t axes = 2 + random() % 3; axes > 0; --axes) {
    array.shape.push_back(1 + static_cast<int>(random() % 5));
    count *= static_cast<size_t>(array.shape.back());
  }
  for (size_t i = 0; i < count; ++i) array.values.push_back(static_cast<double>(i));
  return array;
}

// The element that PyTorch's view would read, at the address begin + sum(index * stride).
double element_by_strides(View view, const Array& base, const Array& array, size_t number) {
  const std::vector<int64_t> sizes(array.shape.begin(), array.shape.end());
  const std::vector<int64_t> strides = strides_of(view, sizes);
  int64_t address = view == View::kWithoutFirst ? 1 : 0;
  for (size_t axis = sizes.size(); axis-- > 0;) {
    address += static_cast<int64_t>(number) % sizes[axis] * strides[axis];
    number /= static_cast<size_t>(sizes[axis]);
  }
  return base.values.at(static_cast<size_t>(address));
}

TEST(Views, ViewOfTheBaseIsTheArray) {
  constexpr unsigned kRandomSeed = 1;
  std::mt19937 random(kRandomSeed);
  for (int round = 0; round < 200; ++round) {
    const Array array = counted(random);
    for (const View view : kAll) {
      const Array base = base_of(view, array);
      size_t count = 1;
      for (const int size : base.shape) count *= static_cast<size_t>(size);
      ASSERT_EQ(base.values.size(), count) << view_text(view, "x");
      for (size_t i = 0; i < array.values.size(); ++i) {
        ASSERT_EQ(element_by_strides(view, base, array, i), array.values[i])
            << "seed " << kRandomSeed << ", round " << round << ": " << view_text(view, "x")
            << " at " << i;
      }
    }
  }
}

TEST(Views, GiveTheExtentsOfTheirBaseAsText) {
  const std::vector<std::string> extents = {"B", "N", "M"};
  using Texts = std::vector<std::string>;
  EXPECT_EQ(base_extents(View::kNone, extents), extents);
  EXPECT_EQ(base_extents(View::kTransposed, extents), (Texts{"B", "M", "N"}));
  EXPECT_EQ(base_extents(View::kEverySecond, extents), (Texts{"B", "N", "2 * M"}));
  EXPECT_EQ(base_extents(View::kWithoutFirst, extents), (Texts{"B", "N", "M + 1"}));
}

}  // namespace
}  // namespace mc::forge
