// SPDX-License-Identifier: Apache-2.0
#include "timing/control_page.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

namespace mc::timing {
namespace {

constexpr size_t kBytes = 4096;
enum Word { kGate, kReady, kDone, kTraced };  // As in device/gate.cc.

// The page as the timed process maps it.
class OtherSide {
 public:
  explicit OtherSide(const Fd& fd)
      : page_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0)) {}
  ~OtherSide() { ::munmap(page_, kBytes); }
  bool is_mapped() const { return page_ != MAP_FAILED; }
  std::atomic_ref<uint32_t> word(Word word) const {
    return std::atomic_ref(static_cast<uint32_t*>(page_)[word]);
  }

 private:
  void* page_;
};

TEST(ControlPage, BeginsWithAClosedGateAndNothingDone) {
  const auto page = ControlPage::create();
  ASSERT_TRUE(page);
  const OtherSide other(page->fd());
  ASSERT_TRUE(other.is_mapped());
  EXPECT_EQ(other.word(kGate), 0u);
  EXPECT_EQ(page->ready(), 0u);
  EXPECT_EQ(page->done(), 0u);
}

TEST(ControlPage, ShowsTheOtherSideThatTheGateIsOpen) {
  auto page = ControlPage::create();
  ASSERT_TRUE(page);
  const OtherSide other(page->fd());
  page->open_gate(7);
  EXPECT_EQ(other.word(kGate), 7u);
  EXPECT_EQ(other.word(kReady), 0u);
  EXPECT_EQ(other.word(kDone), 0u);
}

TEST(ControlPage, TellsTheOtherSideWhichBurstIsTraced) {
  auto page = ControlPage::create();
  ASSERT_TRUE(page);
  const OtherSide other(page->fd());
  page->trace(4);
  EXPECT_EQ(other.word(kTraced), 4u);
  EXPECT_EQ(other.word(kGate), 0u);
}

TEST(ControlPage, ReadsWhatTheOtherSideSays) {
  const auto page = ControlPage::create();
  ASSERT_TRUE(page);
  const OtherSide other(page->fd());
  other.word(kReady) = 3;
  EXPECT_EQ(page->ready(), 3u);
  EXPECT_EQ(page->done(), 0u);
  other.word(kDone) = 0xffffffff;
  EXPECT_EQ(page->ready(), 3u);
  EXPECT_EQ(page->done(), 0xffffffffu);
}

TEST(ControlPage, StaysTheSamePageWhenItIsMoved) {
  auto page = ControlPage::create();
  ASSERT_TRUE(page);
  const OtherSide other(page->fd());
  ControlPage moved = std::move(page).value();
  moved.open_gate(2);
  other.word(kDone) = 5;
  EXPECT_EQ(other.word(kGate), 2u);
  EXPECT_EQ(moved.done(), 5u);
}

TEST(ControlPage, SharesNothingWithAnotherPage) {
  auto page = ControlPage::create();
  const auto second = ControlPage::create();
  ASSERT_TRUE(page && second);
  page->open_gate(9);
  const OtherSide other(second->fd());
  EXPECT_EQ(other.word(kGate), 0u);
}

// A hole in the page would end whoever reads it with a SIGBUS.
TEST(ControlPage, CannotBeMadeShorterByTheOtherSide) {
  const auto page = ControlPage::create();
  ASSERT_TRUE(page);
  EXPECT_NE(::ftruncate(page->fd().get(), 0), 0);
  EXPECT_EQ(page->done(), 0u);
}

}  // namespace
}  // namespace mc::timing
