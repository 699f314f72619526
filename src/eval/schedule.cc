// SPDX-License-Identifier: Apache-2.0
#include "eval/schedule.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mc::eval {

Schedule::Schedule(std::vector<int64_t> capacities) : capacities_(std::move(capacities)) {
  MC_CHECK(!capacities_.empty());
  MC_CHECK(std::ranges::all_of(capacities_, [](int64_t bytes) { return bytes >= 0; }));
}

Schedule::Id Schedule::request(const Request& wanted) {
  const size_t device = wanted.device ? *wanted.device : best_device(wanted.is_warm);
  MC_CHECK(device < capacities_.size() && wanted.bytes >= 0);
  const int64_t bytes = capacity(device) == kAll ? 0 : std::min(wanted.bytes, capacity(device));
  const State state = bytes > 0     ? State::kWaitsForMemory
                      : wanted.turn ? State::kWaitsForTurn
                                    : State::kGranted;
  entries_.push_back({++last_, device, !wanted.device, bytes, wanted.turn, state});
  const Id id = last_;
  grant(device);
  return id;
}

std::vector<Schedule::Id> Schedule::release(Id id) {
  MC_CHECK(is_granted(id));
  const size_t device = device_of(id);
  MC_CHECK(std::erase_if(entries_, [&](const Entry& entry) { return entry.id == id; }) == 1);
  return grant(device);
}

size_t Schedule::num_waiting(size_t device) const {
  return line(device, State::kWaitsForMemory).size() + line(device, State::kWaitsForTurn).size();
}

bool Schedule::set_aside(size_t device) {
  MC_CHECK(device < capacities_.size());
  const bool is_new = num_left() > 1 && aside_.insert(device).second;
  MC_CHECK(num_left() >= 1);  // I6.
  return is_new;
}

const Schedule::Entry& Schedule::at(Id id) const {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  MC_CHECK(found != entries_.end());
  return *found;
}

Schedule::Line Schedule::line(size_t device, State state) const {
  Line found;
  for (const Entry& entry : entries_) {
    if (entry.device == device && entry.state == state) found.push_back(&entry);
  }
  return found;
}

int64_t Schedule::num_turns(size_t device, State state, Use use) const {
  return std::ranges::count(line(device, state), use, &Entry::turn);
}

int64_t Schedule::free_bytes(size_t device) const {
  int64_t free = capacity(device);
  for (const Entry& entry : entries_) {
    if (entry.device == device && entry.state != State::kWaitsForMemory) free -= entry.bytes;
  }
  return free;
}

// The cost of a device is twice its candidates; an open judge is worth one and a half of them.
size_t Schedule::best_device(const std::vector<bool>& is_warm) const {
  std::vector<int64_t> costs(capacities_.size(), kAll);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (is_set_aside(i)) continue;
    const int64_t num_candidates = std::ranges::count_if(
        entries_, [&](const Entry& entry) { return entry.device == i && entry.is_candidate; });
    const int64_t cold = i < is_warm.size() && is_warm[i] ? 0 : num_candidates == 0 ? 1 : 3;
    costs[i] = 2 * num_candidates + cold;
  }
  const auto best = std::ranges::min_element(costs);
  MC_CHECK(*best < kAll);  // I6.
  return best - costs.begin();
}

const Schedule::Entry* Schedule::next_for_memory(size_t device) const {
  const int64_t free = free_bytes(device);
  for (const Entry* entry : line(device, State::kWaitsForMemory)) {
    if (entry->bytes <= free) return entry;
    if (entry->num_passed == kPassedMax) return nullptr;
  }
  return nullptr;
}

// The first overdue request is next, so that shared requests that were passed together are granted
// together.
const Schedule::Entry* Schedule::next_for_turn(size_t device) const {
  const Line waiting = line(device, State::kWaitsForTurn);
  if (waiting.empty() || num_turns(device, State::kGranted, Use::kExclusive) > 0) return nullptr;
  const bool is_free = num_turns(device, State::kGranted, Use::kShared) == 0;
  auto next = std::ranges::find(waiting, kPassedMax, &Entry::num_passed);
  if (next == waiting.end() && is_free) {
    next = std::ranges::find(waiting, Use::kExclusive, &Entry::turn);
  }
  if (next == waiting.end()) next = waiting.begin();
  return is_free || (*next)->turn == Use::kShared ? *next : nullptr;
}

std::vector<Schedule::Id> Schedule::grant(size_t device) {
  std::vector<Id> granted;
  for (;;) {
    const Entry* next = next_for_memory(device);
    if (next == nullptr) next = next_for_turn(device);
    if (next == nullptr) break;
    advance(next->id);
    if (next->state == State::kGranted) granted.push_back(next->id);
  }
  check(device);
  return granted;
}

// Moves a request forward, past the earlier ones that wait for the same resource.
void Schedule::advance(Id id) {
  const auto own = std::ranges::find(entries_, id, &Entry::id);
  MC_CHECK(own != entries_.end() && own->state != State::kGranted);
  for (auto earlier = entries_.begin(); earlier != own; ++earlier) {
    if (earlier->device != own->device || earlier->state != own->state) continue;
    ++earlier->num_passed;
    MC_CHECK(earlier->num_passed <= kPassedMax);  // I4.
  }
  const bool waits_on = own->state == State::kWaitsForMemory && own->turn.has_value();
  own->state = waits_on ? State::kWaitsForTurn : State::kGranted;
}

// I3 and I5 are checked for the first request of each line; the others wait for at least as much.
void Schedule::check(size_t device) const {
  const int64_t free = free_bytes(device);
  const int64_t num_shared = num_turns(device, State::kGranted, Use::kShared);
  const int64_t num_exclusive = num_turns(device, State::kGranted, Use::kExclusive);
  MC_CHECK(0 <= free && free <= capacity(device));                  // I1.
  MC_CHECK(num_exclusive == 0 || num_exclusive + num_shared == 1);  // I2.
  const Line memory = line(device, State::kWaitsForMemory);
  MC_CHECK(memory.empty() || memory.front()->bytes > free);
  const Line turns = line(device, State::kWaitsForTurn);
  MC_CHECK(turns.empty() || num_exclusive > 0 ||
           (num_shared > 0 && turns.front()->turn == Use::kExclusive));
}

}  // namespace mc::eval
