// SPDX-License-Identifier: Apache-2.0
//
// The driver's calls about memory.
//
// An allocation that another process exported is a file: its bytes are copied when the allocation
// is mapped, and copied back when it is unmapped.  Exporting an allocation creates a new file with
// its bytes.  So the device process shares no memory with other processes.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/check.h"
#include "ptx_driver/description.h"
#include "ptx_driver/driver.h"

using mc::ptx_driver::Allocation;
using mc::ptx_driver::Driver;

namespace {

constexpr uint64_t kGranularity = 1;

bool read_all(int descriptor, uint8_t* target, uint64_t bytes, uint64_t offset) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t step =
        pread(descriptor, target + done, bytes - done, static_cast<off_t>(offset + done));
    if (step <= 0) return false;
    done += static_cast<uint64_t>(step);
  }
  return true;
}

bool write_all(int descriptor, const uint8_t* source, uint64_t bytes, uint64_t offset) {
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t step =
        pwrite(descriptor, source + done, bytes - done, static_cast<off_t>(offset + done));
    if (step <= 0) return false;
    done += static_cast<uint64_t>(step);
  }
  return true;
}

// The address in this process of device memory; null unless one allocation contains all bytes.
uint8_t* host(CUdeviceptr address, size_t bytes) {
  return Driver::get().device().host(address, bytes);
}

mc::ptx::Extent extent(CUdeviceptr begin, size_t bytes) { return {begin, begin + bytes}; }

// Reports a fill or copy that leaves its allocation.  A GPU would not detect it within its 2 MiB
// granularity.
CUresult refuse(const char* what, mc::ptx::FindingKind kind, size_t bytes,
                const char* why = "are not within one allocation") {
  Driver::get().report().add(
      {.kind = kind, .kernel = what, .detail = std::to_string(bytes) + " bytes " + why});
  return CUDA_ERROR_INVALID_VALUE;
}

// The executor of commands fills new memory with arbitrary bytes.  So the first fill of a whole
// allocation does not count as a write in findings.
bool is_first_fill(CUdeviceptr target, size_t bytes) {
  const auto mapping = Driver::get().mappings.find(target);
  if (mapping == Driver::get().mappings.end()) return false;
  const bool is_new = std::exchange(mapping->second.is_new, false);
  return is_new && bytes == mapping->second.bytes && Driver::get().device().origins(target) == 0;
}

CUresult fill(CUdeviceptr target, unsigned char value, size_t pitch, size_t width, size_t height) {
  mc::ptx::Device& device = Driver::get().device();
  for (size_t row = 0; row < height; ++row) {
    uint8_t* bytes = host(target + row * pitch, width);
    if (bytes == nullptr) {
      return refuse("[memset]", mc::ptx::FindingKind::kOutOfBoundsWrite, width);
    }
    const bool is_first = is_first_fill(target + row * pitch, width);
    const int fresh = Driver::get().fresh_byte;
    std::memset(bytes, is_first && fresh >= 0 ? fresh : value, width);
    if (is_first) continue;
    // Bytes that the host chooses after a kernel wrote there count as the host's.
    const bool is_late = value != 0 && (device.origins(target) & mc::ptx::kByKernel) != 0;
    Driver::get().note_stream_access("[memset]", {{}, {extent(target + row * pitch, width)}, {}});
    device.note_origins(target + row * pitch, width,
                        is_late ? mc::ptx::kByFill | mc::ptx::kByHost : mc::ptx::kByFill);
  }
  return CUDA_SUCCESS;
}

CUresult copy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  uint8_t* to = host(target, bytes);
  const uint8_t* from = host(source, bytes);
  if (to == nullptr) return refuse("[memcpy]", mc::ptx::FindingKind::kOutOfBoundsWrite, bytes);
  if (from == nullptr) return refuse("[memcpy]", mc::ptx::FindingKind::kOutOfBoundsRead, bytes);
  if (to != from && to < from + bytes && from < to + bytes) {
    return refuse("[memcpy]", mc::ptx::FindingKind::kGlobalRace, bytes,
                  "are copied onto themselves: source and target overlap");
  }
  std::memmove(to, from, bytes);
  mc::ptx::Device& device = Driver::get().device();
  device.note_copy(target, source, bytes);
  Driver::get().note_stream_access("[memcpy]",
                                   {{extent(source, bytes)}, {extent(target, bytes)}, {}});
  return CUDA_SUCCESS;
}

std::string name_of(const Allocation& allocation, uint64_t bytes) {
  return (allocation.descriptor < 0 ? "allocation of " : "input of ") + std::to_string(bytes) +
         " bytes";
}

}  // namespace

extern "C" {

CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t, CUdeviceptr wanted,
                             unsigned long long) {
  const auto range = Driver::get().device().reserve(bytes, wanted);
  if (!range) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = *range;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  Driver& driver = Driver::get();
  if (bytes > mc::ptx_driver::kMappedBytesMax - driver.bytes_used) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = driver.next_allocation++;
  driver.allocations[*handle] = {bytes, -1, 0};
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  auto allocation = Driver::get().allocations.extract(handle);
  if (!allocation) return CUDA_ERROR_INVALID_VALUE;
  if (allocation.mapped().descriptor >= 0) close(allocation.mapped().descriptor);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long) {
  Driver& driver = Driver::get();
  const auto found = driver.allocations.find(handle);
  if (found == driver.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  Allocation& allocation = found->second;
  if (offset > allocation.bytes || bytes > allocation.bytes - offset ||
      !driver.device().allocate_at(address, bytes, name_of(allocation, bytes))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (allocation.descriptor >= 0 &&
      !read_all(allocation.descriptor, host(address, bytes), bytes, offset)) {
    const bool is_released = driver.device().release(address).has_value();
    MC_CHECK(is_released);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (allocation.descriptor >= 0) {
    driver.device().note_origins(address, bytes, mc::ptx::kGiven);
  }
  allocation.mapped = address;
  driver.mappings[address] = {bytes, offset, handle, allocation.descriptor < 0};
  driver.bytes_used += bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}

// All mappings that begin in the range.
CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  Driver& driver = Driver::get();
  const auto first = driver.mappings.lower_bound(address);
  const auto last = driver.mappings.lower_bound(address + bytes);
  CUresult status = CUDA_SUCCESS;
  for (auto one = first; one != last; ++one) {
    const auto& [mapped, mapping] = *one;
    const auto allocation = driver.allocations.find(mapping.handle);
    const bool is_shared =
        allocation != driver.allocations.end() && allocation->second.descriptor >= 0;
    if (is_shared && !write_all(allocation->second.descriptor, host(mapped, mapping.bytes),
                                mapping.bytes, mapping.offset)) {
      status = CUDA_ERROR_OPERATING_SYSTEM;
    }
    const bool is_released = driver.device().release(mapped).has_value();
    MC_CHECK(is_released && driver.bytes_used >= mapping.bytes);
    driver.bytes_used -= mapping.bytes;
  }
  driver.mappings.erase(first, last);
  return status;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* source,
                                        CUmemAllocationHandleType) {
  Driver& driver = Driver::get();
  const int descriptor = dup(static_cast<int>(reinterpret_cast<intptr_t>(source)));
  if (descriptor < 0) return CUDA_ERROR_INVALID_VALUE;
  const off_t end = lseek(descriptor, 0, SEEK_END);
  *handle = driver.next_allocation++;
  driver.allocations[*handle] = {static_cast<uint64_t>(std::max<off_t>(end, 0)), descriptor, 0};
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* target, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType, unsigned long long) {
  Driver& driver = Driver::get();
  const auto found = driver.allocations.find(handle);
  if (found == driver.allocations.end() || found->second.mapped == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t bytes = found->second.bytes;
  const int file = memfd_create("exported", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      !write_all(file, host(found->second.mapped, bytes), bytes, 0)) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *static_cast<int*>(target) = file;
  return CUDA_SUCCESS;
}

// ---- Copies and fills ---------------------------------------------------------------------------

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes,
                              CUstream stream) {
  if (Driver::get().fault() != CUDA_SUCCESS) return Driver::get().fault();
  uint8_t* to = host(target, bytes);
  if (to == nullptr) return refuse("[memcpy]", mc::ptx::FindingKind::kOutOfBoundsWrite, bytes);
  std::memcpy(to, source, bytes);
  Driver::get().order.begin(stream);
  Driver::get().note_stream_access("[memcpy]", {{}, {extent(target, bytes)}, {}});
  Driver::get().note_host_write(target, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  if (Driver::get().fault() != CUDA_SUCCESS) return Driver::get().fault();
  const uint8_t* from = host(source, bytes);
  if (from == nullptr) return refuse("[memcpy]", mc::ptx::FindingKind::kOutOfBoundsRead, bytes);
  Driver::get().check_unwritten(source, bytes);
  Driver::get().order.begin(stream);
  Driver::get().note_stream_access("[memcpy]", {{extent(source, bytes)}, {}, {}});
  std::memcpy(target, from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes,
                              CUstream stream) {
  return Driver::get().queue(stream, [=] { return copy(target, source, bytes); });
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* given, CUstream stream) {
  return Driver::get().queue(stream, [c = *given] {
    for (size_t row = 0; row < c.Height; ++row) {
      const CUresult status =
          copy(c.dstDevice + row * c.dstPitch, c.srcDevice + row * c.srcPitch, c.WidthInBytes);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
  return Driver::get().queue(stream, [=] { return fill(target, value, count, count, 1); });
}

CUresult cuMemsetD2D8Async(CUdeviceptr target, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return Driver::get().queue(stream, [=] { return fill(target, value, pitch, width, height); });
}

// ---- Only timing needs these --------------------------------------------------------------------

CUresult cuMemAlloc_v2(CUdeviceptr*, size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemFree_v2(CUdeviceptr) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemHostAlloc(void**, size_t, unsigned) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemFreeHost(void*) { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr*, void*, unsigned) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t) { return CUDA_ERROR_NOT_SUPPORTED; }

}  // extern "C"
