// SPDX-License-Identifier: Apache-2.0
//
// Managed: memory that host and kernels both use, for programs that are trusted (src/check).
//
// For such a program the device's memory is a file that both processes share; managed memory is
// mapped at the same address in both. While kernels may be running, the host's pages are
// protected: the first access to a page faults, and the handler reports it to the device process
// (HostAccess) in order after the queued work.
#ifndef MC_DEVICE_CLIENT_MANAGED_H_
#define MC_DEVICE_CLIENT_MANAGED_H_

#include <driver_types.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "commands.h"

namespace mc::device {

class Managed {
 public:
  static Managed& get();

  // "DESCRIPTOR:ADDRESS": the file, and the address on the device of its first byte.
  void open(const char* text);
  bool is_open() const { return descriptor_ >= 0; }

  // Allocates zeroed memory. REQUIRES: is_open().
  cudaError_t allocate(void** pointer, uint64_t bytes);
  // Makes a part of the device's memory accessible to the host; false if it cannot be mapped.
  bool map(const void* pointer, uint64_t bytes);
  // False unless an allocation of this kind begins there; then the caller frees it on the device.
  bool release(void* pointer);
  bool has(const void* pointer);

  // Call these after work was queued and after the host waited for it.
  void begin_work();
  void end_work();
  // Reports the program's accesses to the device's memory from now on.
  void watch();
  // Reports an access that faulted and, for managed memory, permits it; false if it stays a fault.
  bool touch(const void* address, const HostAccess& access);

 private:
  int descriptor_ = -1;  // Constant after open(), like base_.
  uint64_t base_ = 0;
  std::mutex mutex_;
  bool is_closed_ = false;   // Pages were made inaccessible; likewise guarded, as the next.
  bool has_opened_ = false;  // Some of them are accessible again.
  std::map<const char*, uint64_t> bytes_;  // Guarded by mutex_: of whole pages, by their begin.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_MANAGED_H_
