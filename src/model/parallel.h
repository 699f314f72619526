// SPDX-License-Identifier: Apache-2.0
//
// Work for a few threads.
//
// A small model is faster with one thread a part of the batch than with all threads in each
// operator: those wait for each other hundreds of times a step.
#ifndef MC_MODEL_PARALLEL_H_
#define MC_MODEL_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace mc::model {

// Calls body(0) to body(count - 1), each in a thread of its own, and waits.  The first exception of
// one of them passes.
void in_parallel(size_t count, const std::function<void(size_t)>& body);

}  // namespace mc::model

#endif  // MC_MODEL_PARALLEL_H_
