// SPDX-License-Identifier: Apache-2.0
//
// The controls with which tests change the fake CUDA driver of cuda_driver.cc.
#ifndef MC_DEVICE_FAKES_CUDA_DRIVER_H_
#define MC_DEVICE_FAKES_CUDA_DRIVER_H_

#include <cstddef>

namespace mc::device {

struct FakeDriver {
  // Forgets faults and live objects, for the next test.
  static void reset();
  static size_t mapped_ranges();
  // Allocations, modules, streams and events that were made and not destroyed.
  static int live_objects();
  // The gates that calls waited for since reset().
  static int gates_waited_for();
  // Makes the next fill of memory fail.
  static void fail_next_fill();
};

}  // namespace mc::device

#endif  // MC_DEVICE_FAKES_CUDA_DRIVER_H_
