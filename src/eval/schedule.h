// SPDX-License-Identifier: Apache-2.0
//
// Schedule: decides which device a candidate gets, how much memory it holds there, and when it
// computes.  A pure state machine, without threads and clocks; scheduler.h waits for its grants.
//
// A request for memory and a turn waits for the memory first, and then for the turn while it holds
// the memory.  So no request for a turn waits for memory, and requests that hold memory progress.
// A request that fits goes before earlier ones that do not fit.  On a free device, exclusive turns
// go before shared ones, since the device idles at each change from one kind to the other.
//
// Invariants, checked after each change:
//   I1  The bytes granted on a device never exceed its capacity.
//   I2  An exclusive turn is the only turn on its device.
//   I3  A request waits only while its resource is not free, or while a grant would delay an
//       overdue request or an earlier exclusive turn.
//   I4  At most kPassedMax later requests go before a request; then it is overdue.
//   I5  A request waits only for resources of granted requests: a release moves its line forward.
//   I6  A candidate gets no device that is set aside. One device is always left.
//
//   Schedule schedule({device_bytes, device_bytes});
//   const Schedule::Id place = schedule.request({});  // A device for a candidate, at once.
//   const Schedule::Id turn = schedule.request({.device = 0, .turn = Schedule::Use::kExclusive});
//   for (const Schedule::Id granted : schedule.release(turn)) wake(granted);
#ifndef MC_EVAL_SCHEDULE_H_
#define MC_EVAL_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "eval/device_lock.h"

namespace mc::eval {

class Schedule {
 public:
  using Use = DeviceLock::Use;
  using Id = int64_t;
  struct Request {
    // Absent for a new candidate.  It gets the device with the fewest candidates.  An idle device
    // comes first; otherwise a device in `is_warm`, which has an open judge of the task, is
    // preferred to one with one candidate less.
    std::optional<size_t> device{};
    std::vector<bool> is_warm{};
    int64_t bytes = 0;  // A request for more than the capacity gets all of it.
    std::optional<Use> turn{};
  };

  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  static constexpr int kPassedMax = 8;

  // `capacities` are the memory of each device; kAll where it is never short.  REQUIRES: there is a
  // device.
  explicit Schedule(std::vector<int64_t> capacities);

  // Adds a request.  It is granted at once, or by a later release.
  Id request(const Request& wanted);
  // Ends a granted request.  Returns the requests that are granted thereby.
  std::vector<Id> release(Id id);

  bool is_granted(Id id) const { return at(id).state == State::kGranted; }
  size_t device_of(Id id) const { return at(id).device; }
  int64_t capacity(size_t device) const { return capacities_[device]; }
  size_t num_waiting(size_t device) const;
  bool is_exclusive_wanted(size_t device) const {
    return num_turns(device, State::kWaitsForTurn, Use::kExclusive) > 0;
  }

  // Excludes a device from further candidates.  False where nothing changes: the device is the last
  // one, or was set aside before.
  bool set_aside(size_t device);
  bool is_set_aside(size_t device) const { return aside_.contains(device); }
  size_t num_left() const { return capacities_.size() - aside_.size(); }

 private:
  enum class State { kWaitsForMemory, kWaitsForTurn, kGranted };
  struct Entry {
    Id id;
    size_t device;
    bool is_candidate;
    int64_t bytes;
    std::optional<Use> turn;
    State state;
    int num_passed = 0;  // The number of later requests that were granted first.
  };
  using Line = std::vector<const Entry*>;  // In the order of arrival.

  const Entry& at(Id id) const;
  Line line(size_t device, State state) const;
  int64_t num_turns(size_t device, State state, Use use) const;
  int64_t free_bytes(size_t device) const;
  size_t best_device(const std::vector<bool>& is_warm) const;
  const Entry* next_for_memory(size_t device) const;
  const Entry* next_for_turn(size_t device) const;
  std::vector<Id> grant(size_t device);
  void advance(Id id);
  void check(size_t device) const;

  const std::vector<int64_t> capacities_;
  std::set<size_t> aside_;
  std::vector<Entry> entries_;  // In the order of arrival.
  Id last_ = 0;
};

}  // namespace mc::eval

#endif  // MC_EVAL_SCHEDULE_H_
