// SPDX-License-Identifier: Apache-2.0
#include "runtime/arena.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/check.h"

namespace mc::emu {

// These tests have parts of the runtime without its report.
void fail_check(const char*, const char*, int) { std::abort(); }

namespace {

constexpr size_t kBytes = size_t{64} << 20;

// Lowers a limit for as long as it lives.
class Limit {
 public:
  Limit(int resource, rlim_t bytes) : resource_(resource) {
    getrlimit(resource, &before_);
    const rlimit lowered{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(resource, &lowered), 0);
  }
  ~Limit() { setrlimit(resource_, &before_); }

 private:
  int resource_;
  rlimit before_;
};

// That this process uses, with the emulator's own where tests of it ran before.
rlim_t address_space_bytes() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

TEST(Arena, IsReservedWithItsShadowWhereDataIsLimited) {
  const Limit limit(RLIMIT_DATA, rlim_t{2} << 30);  // The sandbox sets it too.
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

TEST(Arena, TakesLessWhereTheSystemRefusesMore) {
  const Limit limit(RLIMIT_AS, address_space_bytes() + (rlim_t{64} << 30));
  Arena arena;
  EXPECT_FALSE(arena.reserve(size_t{1} << 38));
  ASSERT_TRUE(arena.reserve_up_to(size_t{1} << 38));
  EXPECT_LT(arena.view().bytes, size_t{1} << 35);
  EXPECT_NE(arena.allocate(1), nullptr);
}

TEST(Arena, RefusesWhatNoSystemHas) {
  Arena arena;
  EXPECT_FALSE(arena.reserve(size_t{1} << 60));
  EXPECT_TRUE(arena.reserve(kBytes));
}

}  // namespace
}  // namespace mc::emu
