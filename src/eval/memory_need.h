// SPDX-License-Identifier: Apache-2.0
//
// The memory of a device that the stages of an evaluation need, the contexts of its processes
// included.  `capacity` is the bound for all evaluations on the device together.
#ifndef MC_EVAL_MEMORY_NEED_H_
#define MC_EVAL_MEMORY_NEED_H_

#include <cstddef>
#include <cstdint>

#include "worker/protocol.h"

namespace mc::eval {

// The memory of a device with `device_bytes`, less a part for idle processes.  Schedule::kAll where
// there is no device, and `device_bytes` is 0.
int64_t capacity_of(int64_t device_bytes);

int64_t need_of_trials(const worker::CallMemory& call, size_t num_shapes);
int64_t need_of_timing(const worker::CallMemory& call, int64_t capacity);

// The part of the memory for timing that the calls of one round may use.
int64_t batch_bytes_max(int64_t capacity);

// The memory that a candidate's process keeps between its trials and its timed calls.
int64_t kept_by_candidate(const worker::CallMemory& call);

// The memory for opening a task whose call needs an estimated `call`; a fixed share of the device's
// memory where the estimate is zero, that is, unknown.  A task that needs more runs out of memory,
// and is opened once more with all of it.
int64_t need_of_opening(const worker::CallMemory& call, int64_t capacity);

}  // namespace mc::eval

#endif  // MC_EVAL_MEMORY_NEED_H_
