// SPDX-License-Identifier: Apache-2.0
//
// Parallel work on a few threads.
//
// For a small model, one thread for each part of the batch is faster than all threads in each
// operator: threads inside an operator wait for each other hundreds of times a step.
#ifndef MC_MODEL_PARALLEL_H_
#define MC_MODEL_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace mc::model {

// Calls body(0) to body(count - 1), each in its own thread, and waits for all.  Rethrows the first
// exception.
void in_parallel(size_t count, const std::function<void(size_t)>& body);

}  // namespace mc::model

#endif  // MC_MODEL_PARALLEL_H_
