// SPDX-License-Identifier: Apache-2.0
//
// CallItems: the work that a call queued on the device, item by item, with the time of each, from
// two events around it in its stream.  An item is a kernel, a copy, a fill, a graph or a library
// function.
#ifndef MC_DEVICE_CUDA_CALL_ITEMS_H_
#define MC_DEVICE_CUDA_CALL_ITEMS_H_

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mc::device {

struct CallItem {
  std::string name;   // A kernel's mangled name, "[memcpy]", "[memset]" or "[graph]".
  std::string owner;  // The kernel's file on this side; "runtime"; empty for the candidate.
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t registers = 0;     // Per thread.
  uint32_t shared_bytes = 0;  // Per block.
  uint32_t launches = 1;
  double us = 0;  // Total time of all launches.
};

class CallItems {
 public:
  static constexpr size_t kItemsMax = 2000;

  CallItems() = default;
  ~CallItems();
  CallItems(const CallItems&) = delete;
  CallItems& operator=(const CallItems&) = delete;

  // Clears all items, and records the following ones if `is_on`.
  void start(bool is_on);
  bool is_on() const { return is_on_; }
  // Call this before a command queues its work in the stream.
  CUresult begin(CUstream stream);
  // The command queued nothing: undoes begin().
  void cancel() { has_begun_ = false; }
  // The command queued `item`.  Does nothing without a begin().
  CUresult end(CallItem item);
  // The items since start(), equal ones merged, the longest first.  REQUIRES: the device is idle.
  CUresult take(std::vector<CallItem>& items);

 private:
  CUresult event(size_t index, CUevent& event);

  bool is_on_ = false;
  bool has_begun_ = false;
  CUstream stream_ = nullptr;  // The stream of the current item.
  std::vector<CallItem> items_;
  std::vector<CUevent> events_;  // Two events per item.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_CALL_ITEMS_H_
