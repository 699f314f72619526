// SPDX-License-Identifier: Apache-2.0
#include "sandbox/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "sandbox/testing/test_child.h"

namespace mc::sandbox {
namespace {

constexpr size_t kSize = 8 << 20;

char* map_private() {
  void* data = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
}

size_t num_resident(char* data) {
  std::array<unsigned char, kSize / 4096> resident{};
  mincore(data, kSize, resident.data());
  size_t num_pages = 0;
  for (const unsigned char byte : resident) num_pages += byte & 1;
  return num_pages;
}

TEST(Memory, IsTheSameAfterCompacting) {
  char* data = map_private();
  ASSERT_NE(data, nullptr);
  for (size_t i = 0; i < kSize; i += 4096) data[i] = static_cast<char>(i >> 12);
  compact_memory();
  for (size_t i = 0; i < kSize; i += 4096) ASSERT_EQ(data[i], static_cast<char>(i >> 12));
  munmap(data, kSize);
}

TEST(Memory, DoesNotBecomeResidentByCompacting) {
  char* data = map_private();
  ASSERT_NE(data, nullptr);
  compact_memory();
  EXPECT_EQ(num_resident(data), 0U);
  munmap(data, kSize);
}

TEST(Memory, IsReleasedWhenForgotten) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer keeps it";
  EXPECT_TRUE(holds_inside(Profile{}, [] {
    char* data = map_private();
    std::memset(data, 1, kSize);
    const size_t num_before = num_resident(data);
    forget_memory();
    return num_before == kSize / 4096 && num_resident(data) == 0;
  }));
}

}  // namespace
}  // namespace mc::sandbox
