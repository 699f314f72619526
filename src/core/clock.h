// SPDX-License-Identifier: Apache-2.0
//
// Clock: time as a dependency.  The default is the machine's clock.  A test passes a clock that
// advances only on command.
#ifndef MC_CORE_CLOCK_H_
#define MC_CORE_CLOCK_H_

#include <chrono>
#include <functional>
#include <thread>

namespace mc {

struct Clock {
  using TimePoint = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  std::function<TimePoint()> now = &std::chrono::steady_clock::now;
  std::function<void(Seconds)> sleep = [](Seconds time) { std::this_thread::sleep_for(time); };

  TimePoint in(double seconds) const {
    return now() +
           std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(seconds));
  }
};

}  // namespace mc

#endif  // MC_CORE_CLOCK_H_
