// SPDX-License-Identifier: Apache-2.0
//
// destroy_together(): the end of several objects that wait as they end, such as processes.
#ifndef MC_CORE_DESTROY_H_
#define MC_CORE_DESTROY_H_

#include <thread>
#include <utility>
#include <vector>

namespace mc {

// Destroys each element in a thread of its own; returns when all are gone.
//
//   destroy_together(std::move(processes));
template <typename Range>
void destroy_together(Range all) {
  std::vector<std::jthread> threads;
  for (auto& one : all) {
    threads.emplace_back([&one] { const auto ended = std::move(one); });
  }
}

}  // namespace mc

#endif  // MC_CORE_DESTROY_H_
