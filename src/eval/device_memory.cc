// SPDX-License-Identifier: Apache-2.0
#include "eval/device_memory.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace mc::eval {
namespace {

constexpr double kShared = 7.0 / 8;  // The rest: contexts of idle judges and of spares.
constexpr int64_t kContexts =
    int64_t{3} << 29;  // The contexts of a judge, a candidate process and a baseline.
// On an H200 a judge reached 9 to 12 times the bytes of one call, for calls of 92 MiB to 1 GiB; a
// candidate adds its outputs.
constexpr double kCopies = 13;
constexpr int64_t kOpeningShare = 8;

}  // namespace

DeviceMemory::DeviceMemory(int64_t device_bytes)
    : capacity_(device_bytes > 0 ? static_cast<int64_t>(static_cast<double>(device_bytes) * kShared)
                                 : kAll),
      free_(capacity_) {}

DeviceMemory::Hold DeviceMemory::take(int64_t bytes) {
  MC_CHECK(bytes > 0);
  if (capacity_ == kAll) return {*this, 0};
  const int64_t wanted = std::min(bytes, capacity_);
  std::unique_lock lock(mutex_);
  waiting_.push_back(&wanted);
  changed_.wait(lock, [&] { return waiting_.front() == &wanted && wanted <= free_; });
  waiting_.pop_front();
  free_ -= wanted;
  MC_CHECK(0 <= free_ && free_ < capacity_);
  changed_.notify_all();  // The next one in line may fit, too.
  return {*this, wanted};
}

void DeviceMemory::give_back(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  free_ += bytes;
  MC_CHECK(free_ <= capacity_);
  changed_.notify_all();
}

int64_t need_of_call(double call_bytes) {
  MC_CHECK(call_bytes >= 0);
  return kContexts + static_cast<int64_t>(std::min(kCopies * call_bytes, 1e15));
}

int64_t need_of_opening(const DeviceMemory& memory) {
  return std::max<int64_t>(1, memory.capacity() / kOpeningShare);
}

}  // namespace mc::eval
