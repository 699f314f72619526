// SPDX-License-Identifier: Apache-2.0
#include "eval/schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kSharedTurn = Schedule::Use::kShared;
constexpr auto kExclusiveTurn = Schedule::Use::kExclusive;

Schedule::Request bytes(int64_t bytes) { return {.device = 0, .bytes = bytes}; }
Schedule::Request turn(Schedule::Use use) { return {.device = 0, .turn = use}; }

// ---- Memory -------------------------------------------------------------------------------------

TEST(Schedule, GrantsAsMuchMemoryAsThereIs) {
  Schedule schedule({70});
  EXPECT_TRUE(schedule.is_granted(schedule.request(bytes(40))));
  EXPECT_TRUE(schedule.is_granted(schedule.request(bytes(30))));
  EXPECT_FALSE(schedule.is_granted(schedule.request(bytes(1))));
}

TEST(Schedule, GrantsAllToARequestForMoreThanThereIs) {
  Schedule schedule({70});
  const Schedule::Id all = schedule.request(bytes(Schedule::kAll));
  const Schedule::Id one = schedule.request(bytes(1));
  EXPECT_FALSE(schedule.is_granted(one));
  EXPECT_THAT(schedule.release(all), ElementsAre(one));
}

TEST(Schedule, GrantsAnyMemoryWhereItIsNeverShort) {
  Schedule schedule({Schedule::kAll});
  EXPECT_TRUE(schedule.is_granted(schedule.request(bytes(Schedule::kAll))));
  EXPECT_TRUE(schedule.is_granted(schedule.request(bytes(Schedule::kAll))));
}

TEST(Schedule, LetsARequestThatFitsPassALargeOne) {
  Schedule schedule({8});
  const Schedule::Id first = schedule.request(bytes(4));
  const Schedule::Id large = schedule.request(bytes(7));
  const Schedule::Id small = schedule.request(bytes(1));
  EXPECT_TRUE(schedule.is_granted(small));
  EXPECT_THAT(schedule.release(first), ElementsAre(large));
}

TEST(Schedule, LetsABoundedNumberPassALargeOne) {
  Schedule schedule({8});
  const Schedule::Id first = schedule.request(bytes(4));
  const Schedule::Id large = schedule.request(bytes(8));
  for (int i = 0; i < Schedule::kPassedMax; ++i) {
    EXPECT_THAT(schedule.release(schedule.request(bytes(1))), IsEmpty());
  }
  const Schedule::Id small = schedule.request(bytes(1));
  EXPECT_FALSE(schedule.is_granted(small));
  EXPECT_THAT(schedule.release(first), ElementsAre(large));
  EXPECT_THAT(schedule.release(large), ElementsAre(small));
}

// ---- Turns --------------------------------------------------------------------------------------

TEST(Schedule, GrantsSharedTurnsTogetherAndAnExclusiveOneAlone) {
  Schedule schedule({8});
  const Schedule::Id one = schedule.request(turn(kSharedTurn));
  const Schedule::Id other = schedule.request(turn(kSharedTurn));
  EXPECT_TRUE(schedule.is_granted(other));
  const Schedule::Id exclusive = schedule.request(turn(kExclusiveTurn));
  EXPECT_TRUE(schedule.is_exclusive_wanted(0));
  EXPECT_THAT(schedule.release(one), IsEmpty());
  EXPECT_THAT(schedule.release(other), ElementsAre(exclusive));
  EXPECT_FALSE(schedule.is_exclusive_wanted(0));
  EXPECT_FALSE(schedule.is_granted(schedule.request(turn(kSharedTurn))));
}

TEST(Schedule, LetsNoLaterSharedTurnPassAnExclusiveOne) {
  Schedule schedule({8});
  const Schedule::Id early = schedule.request(turn(kSharedTurn));
  const Schedule::Id exclusive = schedule.request(turn(kExclusiveTurn));
  const Schedule::Id late = schedule.request(turn(kSharedTurn));
  EXPECT_FALSE(schedule.is_granted(late));
  EXPECT_THAT(schedule.release(early), ElementsAre(exclusive));
  EXPECT_THAT(schedule.release(exclusive), ElementsAre(late));
}

TEST(Schedule, LetsExclusiveTurnsFollowEachOther) {
  Schedule schedule({8});
  const Schedule::Id first = schedule.request(turn(kExclusiveTurn));
  const Schedule::Id shared = schedule.request(turn(kSharedTurn));
  const Schedule::Id second = schedule.request(turn(kExclusiveTurn));
  const Schedule::Id also_shared = schedule.request(turn(kSharedTurn));
  EXPECT_THAT(schedule.release(first), ElementsAre(second));
  EXPECT_THAT(schedule.release(second), ElementsAre(shared, also_shared));
}

TEST(Schedule, GrantsOverdueSharedTurnsTogether) {
  Schedule schedule({8});
  Schedule::Id exclusive = schedule.request(turn(kExclusiveTurn));
  const Schedule::Id shared = schedule.request(turn(kSharedTurn));
  const Schedule::Id also_shared = schedule.request(turn(kSharedTurn));
  for (int i = 0; i < Schedule::kPassedMax; ++i) {
    const Schedule::Id next = schedule.request(turn(kExclusiveTurn));
    EXPECT_THAT(schedule.release(exclusive), ElementsAre(next));
    exclusive = next;
  }
  schedule.request(turn(kExclusiveTurn));
  EXPECT_THAT(schedule.release(exclusive), ElementsAre(shared, also_shared));
}

TEST(Schedule, LetsATurnPassARequestThatWaitsForMemory) {
  Schedule schedule({8});
  schedule.request(bytes(8));
  const Schedule::Id both = schedule.request({.device = 0, .bytes = 1, .turn = kExclusiveTurn});
  EXPECT_FALSE(schedule.is_granted(both));
  EXPECT_TRUE(schedule.is_granted(schedule.request(turn(kSharedTurn))));
}

TEST(Schedule, GrantsMemoryBeforeTheTurnThatARequestWantsToo) {
  Schedule schedule({8});
  const Schedule::Id other = schedule.request(turn(kExclusiveTurn));
  const Schedule::Id both = schedule.request({.device = 0, .bytes = 8, .turn = kSharedTurn});
  const Schedule::Id one = schedule.request(bytes(1));
  EXPECT_FALSE(schedule.is_granted(one));
  EXPECT_THAT(schedule.release(other), ElementsAre(both));
  EXPECT_THAT(schedule.release(both), ElementsAre(one));
}

// ---- Devices ------------------------------------------------------------------------------------

class SchedulePlaces : public testing::Test {
 protected:
  // The devices of `num` candidates that arrive and do not leave.
  std::vector<size_t> devices_of(size_t num, const std::vector<bool>& is_warm = {}) {
    std::vector<size_t> devices;
    for (size_t i = 0; i < num; ++i) {
      places_.push_back(schedule_.request({.is_warm = is_warm}));
      EXPECT_TRUE(schedule_.is_granted(places_.back()));
      devices.push_back(schedule_.device_of(places_.back()));
    }
    return devices;
  }

  Schedule schedule_{{8, 8, 8}};
  std::vector<Schedule::Id> places_;
};

TEST_F(SchedulePlaces, AreOnTheDeviceWithTheFewestCandidates) {
  EXPECT_THAT(devices_of(5), ElementsAre(0, 1, 2, 0, 1));
  schedule_.release(places_[2]);
  EXPECT_THAT(devices_of(2), ElementsAre(2, 2));
}

TEST_F(SchedulePlaces, AreOnAWarmDeviceAmongEquals) {
  EXPECT_THAT(devices_of(1, {false, false, true}), ElementsAre(2));
  EXPECT_THAT(devices_of(2), ElementsAre(0, 1));
  EXPECT_THAT(devices_of(1, {false, true}), ElementsAre(1));
}

TEST_F(SchedulePlaces, AreOnAWarmDeviceWithOneCandidateMoreThanABusyOne) {
  EXPECT_THAT(devices_of(3), ElementsAre(0, 1, 2));
  EXPECT_THAT(devices_of(2, {false, true}), ElementsAre(1, 1));
  EXPECT_THAT(devices_of(1, {false, true}), ElementsAre(0));
}

TEST_F(SchedulePlaces, AreOnAnIdleDeviceBeforeAWarmOne) {
  EXPECT_THAT(devices_of(3, {false, true}), ElementsAre(1, 0, 2));
}

TEST_F(SchedulePlaces, AreOnNoDeviceThatIsSetAside) {
  EXPECT_TRUE(schedule_.set_aside(0));
  EXPECT_FALSE(schedule_.set_aside(0));
  EXPECT_TRUE(schedule_.is_set_aside(0));
  EXPECT_THAT(devices_of(3, {true}), ElementsAre(1, 2, 1));
  EXPECT_TRUE(schedule_.set_aside(2));
  EXPECT_FALSE(schedule_.set_aside(1)) << "the last one";
  EXPECT_EQ(schedule_.num_left(), 1);
  EXPECT_THAT(devices_of(2), ElementsAre(1, 1));
}

// ---- Against a model ----------------------------------------------------------------------------

// The rules for one device, implemented with queues and counts in place of one table.
class DeviceModel {
 public:
  explicit DeviceModel(int64_t capacity) : free_(capacity) {}

  void request(Schedule::Id id, int64_t bytes, std::optional<Schedule::Use> turn) {
    if (bytes > 0) {
      for_memory_.push_back({id, bytes, turn});
    } else {
      have_memory({id, 0, turn});
    }
    settle();
  }

  void release(Schedule::Id id) {
    const Waiter ended = granted_.at(id);
    granted_.erase(id);
    free_ += ended.bytes;
    if (ended.turn) --(*ended.turn == kSharedTurn ? num_shared_ : num_exclusive_);
    settle();
  }

  // Checks the invariants that are visible from outside.
  void check() const {
    ASSERT_GE(free_, 0);
    ASSERT_TRUE(num_exclusive_ == 0 || (num_exclusive_ == 1 && num_shared_ == 0));
    for (const auto& line : {for_memory_, for_turn_}) {
      for (const Waiter& waiter : line) ASSERT_LE(waiter.num_passed, Schedule::kPassedMax);
    }
  }

  bool is_granted(Schedule::Id id) const { return granted_.contains(id); }
  size_t num_waiting() const { return for_memory_.size() + for_turn_.size(); }

 private:
  struct Waiter {
    Schedule::Id id;
    int64_t bytes;
    std::optional<Schedule::Use> turn;
    int num_passed = 0;
  };
  using Queue = std::deque<Waiter>;

  void have_memory(const Waiter& waiter) {
    if (!waiter.turn) {
      granted_.emplace(waiter.id, waiter);
      return;
    }
    const auto later = [&](const Waiter& other) { return other.id > waiter.id; };
    for_turn_.insert(std::ranges::find_if(for_turn_, later), waiter);
  }

  Waiter leave(Queue& queue, size_t index) {
    const Waiter waiter = queue[index];
    for (size_t i = 0; i < index; ++i) ++queue[i].num_passed;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
    return waiter;
  }

  void settle() {
    while (settle_memory() || settle_turn()) {
    }
  }

  bool settle_memory() {
    for (size_t i = 0; i < for_memory_.size(); ++i) {
      if (i > 0 && for_memory_.front().num_passed == Schedule::kPassedMax) return false;
      if (for_memory_[i].bytes > free_) continue;
      free_ -= for_memory_[i].bytes;
      have_memory(leave(for_memory_, i));
      return true;
    }
    return false;
  }

  bool settle_turn() {
    for (const bool is_overdue : {true, false}) {
      for (const auto use : {kExclusiveTurn, kSharedTurn}) {
        for (size_t i = 0; i < for_turn_.size(); ++i) {
          if (for_turn_[i].turn != use || !may_have_turn(i, is_overdue)) continue;
          ++(use == kSharedTurn ? num_shared_ : num_exclusive_);
          const Waiter waiter = leave(for_turn_, i);
          granted_.emplace(waiter.id, waiter);
          return true;
        }
      }
    }
    return false;
  }

  bool may_have_turn(size_t index, bool is_overdue) const {
    const Waiter& waiter = for_turn_[index];
    const bool is_shared = waiter.turn == kSharedTurn;
    if (num_exclusive_ > 0 || (!is_shared && num_shared_ > 0)) return false;
    const auto overdue = [](const Waiter& one) { return one.num_passed == Schedule::kPassedMax; };
    const auto first = std::ranges::find_if(for_turn_, overdue);
    if (first != for_turn_.end()) return is_overdue && first->id == waiter.id;
    const auto begin = for_turn_.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(index);
    const auto exclusive = [](const Waiter& one) { return one.turn == kExclusiveTurn; };
    return !is_overdue && (!is_shared || std::none_of(begin, end, exclusive));
  }

  int64_t free_;
  int num_shared_ = 0;
  int num_exclusive_ = 0;
  Queue for_memory_;
  Queue for_turn_;
  std::map<Schedule::Id, Waiter> granted_;
};

// A random run of requests and releases on some devices.
class RandomRun {
 public:
  explicit RandomRun(uint64_t seed) : random_(seed), schedule_({kCapacity, kCapacity}) {}

  void run(int num_steps) {
    for (int i = 0; i < num_steps && !testing::Test::HasFatalFailure(); ++i) {
      const bool may_request = open_.size() < 30;
      if (may_request && draw(5) < 3) {
        request();
      } else {
        release();
      }
      compare();
    }
    while (!open_.empty() && !testing::Test::HasFatalFailure()) {
      release();
      compare();
    }
  }

 private:
  static constexpr int64_t kCapacity = 100;

  size_t draw(size_t below) { return random_() % below; }

  void request() {
    Schedule::Request wanted{.device = draw(2)};
    const size_t kind = draw(4);
    if (kind == 0) wanted.bytes = 1 + static_cast<int64_t>(draw(10));
    if (kind == 1) wanted.bytes = 1 + static_cast<int64_t>(draw(120));
    if (kind > 1 || draw(4) == 0) wanted.turn = draw(2) == 0 ? kSharedTurn : kExclusiveTurn;
    if (kind == 3 && draw(4) == 0) wanted = {};
    const Schedule::Id id = schedule_.request(wanted);
    const size_t device = schedule_.device_of(id);
    open_[id] = device;
    models_[device].request(id, std::min(wanted.bytes, kCapacity), wanted.turn);
  }

  // Ends a random granted request.  Some request is always granted while there are any.
  void release() {
    std::vector<Schedule::Id> granted;
    for (const auto& [id, device] : open_) {
      if (schedule_.is_granted(id)) granted.push_back(id);
    }
    ASSERT_TRUE(open_.empty() || !granted.empty());
    if (granted.empty()) return;
    const Schedule::Id id = granted[draw(granted.size())];
    schedule_.release(id);
    models_[open_.at(id)].release(id);
    open_.erase(id);
  }

  void compare() {
    for (const auto& [id, device] : open_) {
      ASSERT_EQ(schedule_.is_granted(id), models_[device].is_granted(id)) << id;
    }
    for (size_t device = 0; device < 2; ++device) {
      ASSERT_EQ(schedule_.num_waiting(device), models_[device].num_waiting());
      models_[device].check();
    }
  }

  std::mt19937_64 random_;
  Schedule schedule_;
  std::vector<DeviceModel> models_{2, DeviceModel(kCapacity)};
  std::map<Schedule::Id, size_t> open_;
};

TEST(Schedule, GrantsWhatItsModelDoes) {
  for (uint64_t seed = 1; seed <= 20 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun(seed).run(400);
  }
}

}  // namespace
}  // namespace mc::eval
