// SPDX-License-Identifier: Apache-2.0
//
// Managed: memory that host and kernels both use, for programs that are trusted (src/check).
//
// There the device's memory is a file that this process has too, and a part of it is mapped at its
// address on the device.  Accesses of the host between launches are not checked.
#ifndef MC_DEVICE_CLIENT_MANAGED_H_
#define MC_DEVICE_CLIENT_MANAGED_H_

#include <driver_types.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace mc::device {

class Managed {
 public:
  static Managed& get();

  // "DESCRIPTOR:ADDRESS": the file, and the address on the device of its first byte.
  void open(const char* text);
  bool is_open() const { return descriptor_ >= 0; }

  // Bytes that are zero.  REQUIRES: is_open().
  cudaError_t allocate(void** pointer, uint64_t bytes);
  // False unless an allocation of this kind begins there; then the caller frees it on the device.
  bool release(void* pointer);
  bool has(const void* pointer);

 private:
  int descriptor_ = -1;  // Constant after open(), like the next.
  uint64_t base_ = 0;
  std::mutex mutex_;
  std::map<const char*, uint64_t> bytes_;  // Guarded by mutex_: of whole pages, by their begin.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_MANAGED_H_
