// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/stream_order.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace mc::ptx_driver {
namespace {

using Ranges = std::vector<ptx::Extent>;

// A history takes at most 64 MiB.  If a program never waits, or touches every other word of much
// memory, the oldest work is forgotten.
constexpr size_t kRecordsMax = 4096, kExtentsMax = size_t{1} << 22;

size_t extents_of(const ptx::TouchedBytes& bytes) {
  return bytes.read.size() + bytes.written.size() + bytes.updated.size();
}

void join(Clock& clock, const Clock& other) {
  for (const auto& [stream, tick] : other) {
    uint64_t& known = clock[stream];
    known = std::max(known, tick);
  }
}

uint64_t tick_in(const Clock& clock, CUstream stream) {
  const auto found = clock.find(stream);
  return found == clock.end() ? 0 : found->second;
}

// Both are in order.
bool overlap(const Ranges& some, const Ranges& others) {
  for (size_t i = 0, k = 0; i < some.size() && k < others.size();) {
    if (some[i].begin < others[k].end && others[k].begin < some[i].end) return true;
    some[i].end < others[k].end ? ++i : ++k;
  }
  return false;
}

// Atomic updates conflict with all accesses except other atomic updates.
bool conflict(const ptx::TouchedBytes& a, const ptx::TouchedBytes& b) {
  const auto is_hurt = [](const ptx::TouchedBytes& one, const ptx::TouchedBytes& other) {
    return overlap(one.written, other.written) || overlap(one.written, other.read) ||
           overlap(one.written, other.updated) || overlap(one.updated, other.read);
  };
  return is_hurt(a, b) || is_hurt(b, a);
}

}  // namespace

// The null stream is the legacy default stream: no code here is compiled with per-thread streams.
CUstream StreamOrder::usual(CUstream stream) {
  return stream == nullptr ? CU_STREAM_LEGACY : stream;
}

bool StreamOrder::is_blocking(CUstream stream) const {
  const auto found = is_blocking_.find(stream);
  return found == is_blocking_.end() || found->second;
}

void StreamOrder::add_stream(CUstream stream, unsigned flags) {
  is_recording_ = true;
  is_blocking_[stream] = (flags & CU_STREAM_NON_BLOCKING) == 0;
}

void StreamOrder::begin(CUstream stream) {
  current_ = usual(stream);
  Clock clock = clock_of(current_);
  clock[current_] = ++ticks_[current_];
  known_[current_] = std::move(clock);
}

Clock StreamOrder::clock_of(CUstream stream) const {
  stream = usual(stream);
  Clock clock = host_;
  if (const auto own = known_.find(stream); own != known_.end()) join(clock, own->second);
  for (const auto& [other, known] : known_) {
    const bool is_one_default = stream == CU_STREAM_LEGACY || other == CU_STREAM_LEGACY;
    if (is_one_default && is_blocking(stream) && is_blocking(other)) join(clock, known);
  }
  return clock;
}

std::optional<std::string> StreamOrder::access(StreamWork work) {
  MC_CHECK(is_recording_ && known_.contains(current_));
  // Work before the host's last wait for a stream is ordered before all later work.
  std::erase_if(history_, [this](const Record& one) {
    const bool is_before = one.tick <= tick_in(host_by_stream_, one.stream);
    if (is_before) drop_extents(one);
    return is_before;
  });
  std::optional<std::string> found;
  const Clock& clock = known_[current_];
  for (const Record& one : history_) {
    if (one.tick <= tick_in(clock, one.stream) || !conflict(one.work.bytes, work.bytes)) continue;
    found = one.work.name;
    break;
  }
  add(std::move(work));
  return found;
}

void StreamOrder::drop_extents(const Record& one) {
  const size_t extents = extents_of(one.work.bytes);
  MC_CHECK(num_extents_ >= extents);
  num_extents_ -= extents;
}

void StreamOrder::add(StreamWork work) {
  num_extents_ += extents_of(work.bytes);
  history_.push_back({current_, ticks_[current_], std::move(work)});
  while (history_.size() > kRecordsMax || num_extents_ > kExtentsMax) {
    drop_extents(history_.front());
    history_.pop_front();
  }
}

std::optional<std::string> StreamOrder::host_reads(const ptx::Extent& range) const {
  const ptx::TouchedBytes bytes{.read = {range}, .written = {}, .updated = {}};
  for (const Record& one : history_) {
    const bool is_before = one.tick <= tick_in(host_by_stream_, one.stream);
    if (!is_before && conflict(one.work.bytes, bytes)) return one.work.name;
  }
  return std::nullopt;
}

std::optional<std::string> StreamOrder::host_touches(const device::HostAccess& access) {
  const Ranges word = {{access.address, access.address + 1}};
  for (const Record& one : history_) {
    const ptx::TouchedBytes& bytes = one.work.bytes;
    if (one.tick <= tick_in(host_, one.stream)) continue;
    const bool is_flag = overlap(bytes.updated, word);
    if (is_flag) join(host_, {{one.stream, one.tick}});
    const bool reads = access.writes != 0 && overlap(bytes.read, word);
    if (!is_flag && (reads || overlap(bytes.written, word))) return one.work.name;
  }
  return std::nullopt;
}

void StreamOrder::wait(CUstream stream, const Clock& event) { join(known_[usual(stream)], event); }

void StreamOrder::host_waits(const Clock& event) { join(host_, event); }

// Work that this wait orders stays in the history until the host has read its outputs.
void StreamOrder::host_waits_for(CUstream stream) {
  join(host_, clock_of(stream));
  host_by_stream_ = host_;
}

void StreamOrder::host_waits_for_all() { join(host_, ticks_); }

void StreamOrder::forget() {
  history_.clear();
  num_extents_ = 0;
}

}  // namespace mc::ptx_driver
