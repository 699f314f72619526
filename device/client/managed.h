// SPDX-License-Identifier: Apache-2.0
//
// Managed: memory that host and kernels both use, for programs that are trusted (src/check).
//
// There the device's memory is a file that this process has too, and a part of it is mapped at its
// address on the device.  While work may be under way the host cannot touch it: its first access to
// a page is a fault, by which the device process learns of it (HostAccess) behind that work.
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

  // Bytes that are zero.  REQUIRES: is_open().
  cudaError_t allocate(void** pointer, uint64_t bytes);
  // Bytes of the device's memory are the host's, too. False: they cannot be mapped.
  bool map(const void* pointer, uint64_t bytes);
  // False unless an allocation of this kind begins there; then the caller frees it on the device.
  bool release(void* pointer);
  bool has(const void* pointer);

  // Work was queued; the host waited for it.
  void begin_work();
  void end_work();
  // The program's accesses to the device's memory are noted from now on.
  void watch();
  // An access that had no right to the memory. False: it has none now.
  bool touch(const void* address, const HostAccess& access);

 private:
  int descriptor_ = -1;  // Constant after open(), like the next.
  uint64_t base_ = 0;
  std::mutex mutex_;
  bool is_closed_ = false;   // Pages were made inaccessible; likewise guarded, as the next.
  bool has_opened_ = false;  // Some of them are accessible again.
  std::map<const char*, uint64_t> bytes_;  // Guarded by mutex_: of whole pages, by their begin.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_MANAGED_H_
