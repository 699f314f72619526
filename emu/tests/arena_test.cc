// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace mc::emu {
namespace {

constexpr size_t kBytes = size_t{64} << 20;

// Lowers RLIMIT_DATA, which the sandbox sets for candidates, for as long as it lives.
class DataLimit {
 public:
  explicit DataLimit(rlim_t bytes) {
    getrlimit(RLIMIT_DATA, &before_);
    const rlimit lowered{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_DATA, &lowered), 0);
  }
  ~DataLimit() { setrlimit(RLIMIT_DATA, &before_); }

 private:
  rlimit before_;
};

TEST(Arena, IsReservedWithItsShadowWhereDataIsLimited) {
  const DataLimit limit(rlim_t{2} << 30);
  Arena arena;
  ASSERT_TRUE(arena.reserve(size_t{1} << 38));
  void* pointer = arena.allocate(4);
  ASSERT_NE(pointer, nullptr);
  *arena.view().shadow_of(reinterpret_cast<uintptr_t>(pointer)) = 7;
}

TEST(Arena, ForgetsTheRecordsOfWhatIsReleased) {
  Arena arena;
  ASSERT_TRUE(arena.reserve(kBytes));
  const auto address = reinterpret_cast<uintptr_t>(arena.allocate(4));
  uint64_t* record = arena.view().shadow_of(address);
  *record = 7;
  arena.find(address)->written_in = 1;
  arena.release(reinterpret_cast<void*>(address));
  EXPECT_EQ(*record, 0u);
}

TEST(Arena, ForgetsAllRecords) {
  Arena arena;
  ASSERT_TRUE(arena.reserve(kBytes));
  uint64_t* record = arena.view().shadow_of(reinterpret_cast<uintptr_t>(arena.allocate(4)));
  *record = 7;
  arena.clear_shadow();
  EXPECT_EQ(*record, 0u);
}

TEST(Arena, RefusesWhatNoSystemHas) {
  Arena arena;
  EXPECT_FALSE(arena.reserve(size_t{1} << 60));
  EXPECT_TRUE(arena.reserve(kBytes));
}

}  // namespace
}  // namespace mc::emu
