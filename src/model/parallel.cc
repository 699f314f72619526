// SPDX-License-Identifier: Apache-2.0
#include "model/parallel.h"

#include <exception>
#include <thread>
#include <vector>

#include "core/check.h"

namespace mc::model {

void in_parallel(size_t count, const std::function<void(size_t)>& body) {
  MC_CHECK(count > 0);  // The caller's thread runs the first part.
  std::vector<std::exception_ptr> failures(count);
  const auto guarded = [&](size_t i) {
    try {
      body(i);
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i) threads.emplace_back(guarded, i);
  guarded(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace mc::model
