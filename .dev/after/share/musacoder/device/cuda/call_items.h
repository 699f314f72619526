// SPDX-License-Identifier: Apache-2.0
//
// CallItems: what a call gave the device to do, piece by piece, with the time that each took: two
// events around it, in the stream that it is queued in.  A piece is a kernel, a copy, a fill, a
// graph, or a library's function.
#ifndef MC_DEVICE_CUDA_CALL_ITEMS_H_
#define MC_DEVICE_CUDA_CALL_ITEMS_H_

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

namespace mc::device {

struct CallItem {
  std::string name;   // A kernel's is mangled; others are "[memcpy]", "[memset]", "[graph]".
  std::string owner;  // The file that holds the kernel, here; "runtime"; empty for the candidate's.
  uint32_t grid[3] = {};
  uint32_t block[3] = {};
  uint32_t registers = 0;     // A thread.
  uint32_t shared_bytes = 0;  // A block.
  uint32_t launches = 1;
  double us = 0;  // All launches.
};

class CallItems {
 public:
  static constexpr size_t kItemsMax = 2000;

  CallItems() = default;
  ~CallItems();
  CallItems(const CallItems&) = delete;
  CallItems& operator=(const CallItems&) = delete;

  // Forgets all, and takes what follows where `is_on`.
  void start(bool is_on);
  bool is_on() const { return is_on_; }
  // The next command queues its work in the stream.  Before it does.
  CUresult begin(CUstream stream);
  // It did not: the begin() is void.
  void cancel() { has_begun_ = false; }
  // It has: this is what.  Nothing happens without a begin().
  CUresult end(CallItem item);
  // The pieces since start(), alike ones together, the longest first.  REQUIRES: the device is
  // done.
  CUresult take(std::vector<CallItem>& items);

 private:
  CUresult event(size_t index, CUevent& event);

  bool is_on_ = false;
  bool has_begun_ = false;
  CUstream stream_ = nullptr;  // The begun one's.
  std::vector<CallItem> items_;
  std::vector<CUevent> events_;  // Two for each.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_CALL_ITEMS_H_
