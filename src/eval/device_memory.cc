// SPDX-License-Identifier: Apache-2.0
#include "eval/device_memory.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "core/check.h"
#include "timing/call_comparison.h"

namespace mc::eval {
namespace {

constexpr double kShared = 7.0 / 8;              // The rest: contexts of idle judges and of spares.
constexpr int64_t kContexts = int64_t{1} << 30;  // The contexts of a judge and a device process.
constexpr int64_t kSlack = int64_t{1} << 28;     // Pieces of a comparison, and what is kept.
constexpr int64_t kOpeningShare = 8;
constexpr int64_t kBatchShare = 16;
constexpr int64_t kBatchBytesMax = int64_t{4} << 30;

int64_t total(std::initializer_list<double> parts) {
  return static_cast<int64_t>(std::min(std::accumulate(parts.begin(), parts.end(), 0.0), 1e15));
}

}  // namespace

DeviceMemory::DeviceMemory(int64_t device_bytes)
    : capacity_(device_bytes > 0 ? static_cast<int64_t>(static_cast<double>(device_bytes) * kShared)
                                 : kAll),
      free_(capacity_) {}

DeviceMemory::Hold DeviceMemory::take(int64_t bytes) {
  MC_CHECK(bytes > 0);
  if (capacity_ == kAll) return {*this, 0};
  Waiter waiter{std::min(bytes, capacity_)};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&waiter);
  changed_.wait(lock, [&] { return may_enter(waiter); });
  const auto own = std::ranges::find(waiting_, &waiter);
  for (auto earlier = waiting_.begin(); earlier != own; ++earlier) ++(*earlier)->num_passed;
  waiting_.erase(own);
  free_ -= waiter.wanted;
  MC_CHECK(0 <= free_ && free_ < capacity_);
  changed_.notify_all();  // Another one may fit, too.
  return {*this, waiter.wanted};
}

bool DeviceMemory::may_enter(const Waiter& waiter) const {
  if (waiter.wanted > free_) return false;
  const auto own = std::ranges::find(waiting_, &waiter);
  MC_CHECK(own != waiting_.end());
  return std::none_of(waiting_.begin(), own,
                      [](const Waiter* earlier) { return earlier->num_passed >= kPassedMax; });
}

void DeviceMemory::give_back(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  free_ += bytes;
  MC_CHECK(free_ <= capacity_);
  changed_.notify_all();
}

// At each shape the judge, its region and the candidate have the state; the candidate may make
// another form of it.  The inputs are in a region, and beside it drawn by the judge or copied by
// the candidate's poisoned memory; the outputs are the reference's, the candidate's and a copy of
// these.
int64_t need_of_trials(const worker::CallMemory& call, size_t num_shapes) {
  const auto state = static_cast<double>(call.state);
  return total({double{kContexts}, double{kSlack},
                (3.0 * static_cast<double>(num_shapes) + 1) * state,
                2.0 * static_cast<double>(call.inputs), 3.0 * static_cast<double>(call.outputs),
                2.0 * static_cast<double>(call.work)});
}

// Beside the batch there are the two places of the inputs in the device process and in the judge,
// and the outputs of the candidate, of the baseline and of a comparison.
int64_t need_of_timing(const worker::CallMemory& call, const DeviceMemory& memory) {
  const auto batch =
      static_cast<double>(timing::batch_bytes(call.inputs, call.outputs, batch_bytes_max(memory)));
  return total({double{kContexts}, double{kSlack}, batch, 3.0 * static_cast<double>(call.state),
                4.0 * static_cast<double>(call.inputs), 3.0 * static_cast<double>(call.outputs),
                2.0 * static_cast<double>(call.work)});
}

int64_t batch_bytes_max(const DeviceMemory& memory) {
  return std::min(kBatchBytesMax, memory.capacity() / kBatchShare);
}

int64_t kept_by_candidate(const worker::CallMemory& call) { return 2 * call.state + call.outputs; }

// The reference runs several times, some of them in double precision.
int64_t need_of_opening(const worker::CallMemory& call, const DeviceMemory& memory) {
  const double io = static_cast<double>(call.inputs) + static_cast<double>(call.outputs);
  const int64_t estimated =
      total({double{kContexts}, double{kSlack}, 4.0 * io, 3.0 * static_cast<double>(call.state),
             3.0 * static_cast<double>(call.work)});
  const int64_t share = std::max<int64_t>(1, memory.capacity() / kOpeningShare);
  return io > 0 ? std::max(estimated, std::min(share, int64_t{4} << 30)) : share;
}

}  // namespace mc::eval
