// SPDX-License-Identifier: Apache-2.0
//
// The requests of tests to the CUDA driver that cuda_driver.cc stands in for.
#ifndef MC_DEVICE_FAKES_CUDA_DRIVER_H_
#define MC_DEVICE_FAKES_CUDA_DRIVER_H_

#include <cstddef>

namespace mc::device {

struct FakeDriver {
  // Forgets faults and what is alive, for the next test.
  static void reset();
  static size_t mapped_ranges();
  // Allocations, modules, streams and events that were made and not destroyed.
  static int live_objects();
  // Since reset().
  static int gates_waited_for();
  // The next fill of memory is refused.
  static void fail_next_fill();
};

}  // namespace mc::device

#endif  // MC_DEVICE_FAKES_CUDA_DRIVER_H_
