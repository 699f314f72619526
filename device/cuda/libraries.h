// SPDX-License-Identifier: Apache-2.0
//
// Libraries: calls of cuBLAS, cuBLASLt and cuDNN that a candidate process sends (library_calls.h),
// made in the device process with its own handles and objects.
//
// The sender is hostile: handles, objects and algorithms of products are numbers that are looked up
// by kind, addresses must be the device's, and lengths are checked against the command.  The other
// arguments are plain numbers, most of which the libraries check.
#ifndef MC_DEVICE_CUDA_LIBRARIES_H_
#define MC_DEVICE_CUDA_LIBRARIES_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "library_calls.h"

namespace mc::device {

// The function of a library, by its name; null where it is not there.  The libraries are PyTorch's;
// a device in software has a few functions of its own (ptx_driver/blas.cc).
void* find_library_function(const char* name);

// Information about a call that only the executor has.
class CallContext {
 public:
  virtual ~CallContext() = default;
  virtual bool stream_of(uint32_t handle, CUstream& stream) = 0;
  virtual bool is_device_range(uint64_t address, uint64_t bytes) const = 0;
};

class Libraries {
 public:
  static constexpr uint64_t kNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED.

  explicit Libraries(CallContext& context) : context_(context) {}
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // Makes a call, whose arguments are `words`; false where they are malformed or name what is not
  // there.  The reply's words follow: kNotSupported alone where the library lacks the function.
  bool call(uint32_t function, const std::vector<uint64_t>& words, std::vector<uint64_t>& reply);
  // Destroys all objects, and resets the handles for the next candidate.  False on failure.
  bool reset();

 private:
  struct Handle {
    uint32_t maker = 0;  // The function that made it.
    void* pointer = nullptr;
    uint32_t stream = 0;
    bool is_on_device = false;  // The handle's pointer mode: scalars are on the device.
  };
  struct Object {
    uint32_t maker = 0;
    char kind = 0;
    void* pointer = nullptr;
  };
  using Algorithm = std::array<uint64_t, kAlgorithmBytes / 8>;

  class Arguments;
  int make_handle(uint32_t function, void*& pointer);

  CallContext& context_;
  std::array<void*, kNumLibraryFunctions> entries_{};
  uint64_t next_ = 1;  // The number of the next handle.
  std::unordered_map<uint64_t, Handle> handles_;
  std::unordered_map<uint64_t, Object> objects_;
  std::vector<Object> ended_;            // Ended by the candidate; other objects may refer to them.
  std::multimap<uint32_t, void*> kept_;  // Handles, by the function that made them.
  std::vector<Algorithm> algorithms_;
  uint64_t num_algorithms_ = 0;  // In total; algorithms_ has the most recent ones.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_LIBRARIES_H_
