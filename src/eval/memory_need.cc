// SPDX-License-Identifier: Apache-2.0
#include "eval/memory_need.h"

#include <algorithm>

#include "eval/schedule.h"
#include "timing/call_comparison.h"

namespace mc::eval {
namespace {

constexpr double kShared = 7.0 / 8;              // The rest: contexts of idle judges and of spares.
constexpr int64_t kContexts = int64_t{1} << 30;  // The contexts of a judge and a device process.
constexpr int64_t kSlack = int64_t{1} << 28;     // Pieces of a comparison, and what is kept.
constexpr int64_t kOpeningShare = 8;
constexpr int64_t kBatchShare = 16;
constexpr int64_t kBatchBytesMax = int64_t{4} << 30;

// The number of copies of each part of a call.
struct Copies {
  double state, inputs, outputs, work;
};

// Doubles, since the sizes of a task may be absurd.
int64_t total(const worker::CallMemory& call, const Copies& copies, int64_t batch = 0) {
  const double bytes = copies.state * static_cast<double>(call.state) +
                       copies.inputs * static_cast<double>(call.inputs) +
                       copies.outputs * static_cast<double>(call.outputs) +
                       copies.work * static_cast<double>(call.work);
  const auto beside = static_cast<double>(kContexts + kSlack + batch);
  return static_cast<int64_t>(std::min(bytes + beside, 1e15));
}

}  // namespace

int64_t capacity_of(int64_t device_bytes) {
  if (device_bytes <= 0) return Schedule::kAll;
  return static_cast<int64_t>(static_cast<double>(device_bytes) * kShared);
}

// At each shape the judge, its region and the candidate have the state; the candidate may make
// another form of it.  The inputs are in a region, and beside it drawn by the judge or copied by
// the candidate's poisoned memory; the outputs are the reference's, the candidate's and a copy of
// these.
int64_t need_of_trials(const worker::CallMemory& call, size_t num_shapes) {
  const double num_states = 3.0 * static_cast<double>(num_shapes) + 1;
  return total(call, {.state = num_states, .inputs = 2, .outputs = 3, .work = 2});
}

// Beside the batch there are the two places of the inputs in the device process and in the judge,
// and the outputs of the candidate, of the baseline and of a comparison.
int64_t need_of_timing(const worker::CallMemory& call, int64_t capacity) {
  return total(call, {.state = 3, .inputs = 4, .outputs = 3, .work = 2},
               timing::batch_bytes(call.inputs, call.outputs, batch_bytes_max(capacity)));
}

int64_t batch_bytes_max(int64_t capacity) {
  return std::min(kBatchBytesMax, capacity / kBatchShare);
}

int64_t kept_by_candidate(const worker::CallMemory& call) { return 2 * call.state + call.outputs; }

// The reference runs several times, some of them in double precision.
int64_t need_of_opening(const worker::CallMemory& call, int64_t capacity) {
  const int64_t share = capacity / kOpeningShare;
  if (call.inputs == 0 && call.outputs == 0) return share;
  return std::max(total(call, {.state = 3, .inputs = 4, .outputs = 4, .work = 3}),
                  std::min(share, int64_t{4} << 30));
}

}  // namespace mc::eval
