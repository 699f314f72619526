// SPDX-License-Identifier: Apache-2.0
//
// Memory: the candidate's maps, writes, reads and copies, and the memory that the judge shares with
// it.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "check.h"
#include "cuda/executor.h"
#include "cuda/kernels.h"

namespace mc::device {
namespace {

// The fill bytes of fresh memory, which change from call to call: large numbers, NaN and zeros. So
// no sum, minimum or maximum into uninitialised memory is right in all calls
// (python/harness/candidate/process.py).
constexpr uint8_t kFreshBytes[] = {0x7F, 0xFF, 0x00};

// The maximum number and size of the small copies from the host that are remembered.
constexpr size_t kGivenMax = 64;
constexpr uint64_t kGivenBytesMax = 256;

uint64_t rounded_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

CUmemAllocationProp Executor::properties_of_memory(CUdevice device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  return properties;
}

// ---- Memory -------------------------------------------------------------------------------------

CUresult Executor::map(const Map& command, std::string_view) {
  const uint64_t arena_end = arena_ + options_.arena_bytes;
  if (command.bytes == 0 || command.bytes > options_.memory_bytes_max ||
      command.address % kGranularity != 0 || command.address < arena_ ||
      command.address > arena_end || command.bytes > arena_end - command.address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t bytes = rounded_up(command.bytes, granularity_);
  const uint64_t end = command.address + bytes;
  const auto next = blocks_.lower_bound(command.address);
  const bool overlaps = (next != blocks_.end() && next->first < end) ||
                        (next != blocks_.begin() &&
                         std::prev(next)->first + std::prev(next)->second.bytes > command.address);
  if (end > arena_end || overlaps) return CUDA_ERROR_INVALID_VALUE;
  if (mapped_bytes_ + bytes > options_.memory_bytes_max) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUmemAllocationProp properties = properties_of_memory(device_);
  Block block{bytes, 0};
  if (const CUresult status = cuMemCreate(&block.handle, bytes, &properties, 0)) return status;
  if (const CUresult status = map_at(command.address, bytes, block.handle)) return status;
  // The memory may be used next in a stream that does not wait for the default stream.
  const uint8_t fresh = kFreshBytes[imports_ % std::size(kFreshBytes)];
  CUresult status = cuMemsetD8Async(command.address, fresh, bytes, CU_STREAM_PER_THREAD);
  if (status == CUDA_SUCCESS) status = cuStreamSynchronize(CU_STREAM_PER_THREAD);
  if (status != CUDA_SUCCESS) {  // The memory may contain another candidate's data.
    unmap_block(command.address, block);
    return status;
  }
  const bool is_new = blocks_.emplace(command.address, block).second;
  mapped_bytes_ += bytes;
  MC_CHECK(is_new && mapped_bytes_ <= options_.memory_bytes_max);
  mapped_bytes_peak_ = std::max(mapped_bytes_peak_, mapped_bytes_);
  return CUDA_SUCCESS;
}

// Takes ownership of the handle: if the memory cannot be mapped, it is released.
CUresult Executor::map_at(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle) {
  const CUresult status = map_part(address, {0, bytes}, handle);
  if (status != CUDA_SUCCESS) cuMemRelease(handle);
  return status;
}

CUresult Executor::map_part(uint64_t address, Extent part, CUmemGenericAllocationHandle handle) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const uint64_t at = address + part.offset;
  CUresult status = cuMemMap(at, part.bytes, part.offset, handle, 0);
  if (status == CUDA_SUCCESS) {
    status = cuMemSetAccess(at, part.bytes, &access, 1);
    if (status != CUDA_SUCCESS) cuMemUnmap(at, part.bytes);
  }
  return status;
}

// Takes ownership of the block's handle, as map_at() does.
CUresult Executor::map_extents(uint64_t address, std::span<const Extent> extents,
                               const Block& block) {
  for (const Extent& part : extents) {
    const bool is_inside = part.offset <= block.bytes && part.bytes <= block.bytes - part.offset;
    CUresult status = is_inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (is_inside && part.bytes > 0) status = map_part(address, part, block.handle);
    if (status == CUDA_SUCCESS) continue;
    unmap_block(address, block);
    return status;
  }
  return CUDA_SUCCESS;
}

void Executor::unmap_block(uint64_t address, const Block& block) {
  cuMemUnmap(address, block.bytes);
  cuMemRelease(block.handle);
}

CUresult Executor::unmap(const Map& command, std::string_view) {
  const auto found = blocks_.find(command.address);
  if (found == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = cuCtxSynchronize();
  unmap_block(found->first, found->second);
  MC_CHECK(mapped_bytes_ >= found->second.bytes);
  mapped_bytes_ -= found->second.bytes;
  blocks_.erase(found);
  return status;
}

CUresult Executor::write(const Write& command, std::string_view data) {
  CUstream stream;
  if (command.bytes > data.size() || !is_device_range(command.target, command.bytes)) {
    note_refused_copy(command.bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_capturing(stream)) {
    note_unsupported("a copy from the host in a graph");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (command.bytes <= kGivenBytesMax) {
    if (given_by_host_.size() >= kGivenMax) given_by_host_.clear();
    given_by_host_[command.target].assign(data.data(), command.bytes);
  }
  // The driver copies pageable memory before it returns.
  const CUresult status = cuMemcpyHtoDAsync(command.target, data.data(), command.bytes, stream);
  end_item({.name = "[memcpy]", .owner = "runtime"});
  return status;
}

CUresult Executor::read(const Read& command, std::string_view) {
  CUstream stream;
  if (command.rows != 1 || command.bytes > kReplyBytesMax ||
      !is_device_range(command.source, command.bytes)) {
    note_refused_copy(command.bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_capturing(stream)) {
    note_unsupported("a copy to the host in a graph");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult status = cuMemcpyDtoHAsync(reply_area_, command.source, command.bytes, stream);
  if (status == CUDA_SUCCESS) status = cuStreamSynchronize(stream);
  const auto given = given_by_host_.find(command.source);
  const bool is_known = given != given_by_host_.end() && given->second.size() == command.bytes &&
                        std::memcmp(given->second.data(), reply_area_, command.bytes) == 0;
  if (!is_known) use_.bytes_to_host += command.bytes;
  set_reply(reply_area_, status == CUDA_SUCCESS ? command.bytes : 0);
  return status;
}

std::vector<uint64_t> Executor::offsets_of(std::span<const Extent> extents) {
  std::vector<uint64_t> offsets;
  for (const Extent& part : extents) offsets.push_back(part.offset);
  std::ranges::sort(offsets);
  return offsets;
}

// The offset of an address in its input or allocation; 0 where an allocation may hold several
// tensors, because PyTorch's allocator divides it.
uint64_t Executor::offset_of(uint64_t address) const {
  const bool is_input = address >= regions_ && address - regions_ < options_.regions_bytes;
  if (!is_input && !is_in_software()) return 0;
  const auto& blocks = is_input ? region_blocks_ : blocks_;
  const auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return address;
  const auto& [begin, block] = *std::prev(next);
  const auto tensor = std::ranges::upper_bound(block.tensors, address - begin);
  return address - begin - (tensor == block.tensors.begin() ? 0 : *std::prev(tensor));
}

// A copy of a whole tensor, or of its beginning, moves nothing.
uint64_t Executor::bytes_moved(const Copy& command) const {
  if (offset_of(command.target) != offset_of(command.source)) return command.bytes * command.rows;
  const bool keeps_rows = command.rows == 1 || command.target_pitch == command.source_pitch;
  return keeps_rows ? 0 : command.bytes * (command.rows - 1);
}

CUresult Executor::copy(const Copy& command, std::string_view) {
  CUstream stream;
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (command.rows == 0 || command.bytes == 0) return CUDA_SUCCESS;
  const bool is_one_row = command.rows == 1;
  const auto is_there = [&](uint64_t address, uint64_t pitch) {
    if (is_one_row) return is_device_range(address, command.bytes);
    return pitch >= command.bytes && pitch <= uint64_t{1} << 32 && command.rows <= 1u << 30 &&
           is_device_range(address, pitch * (command.rows - 1) + command.bytes);
  };
  if (!is_there(command.target, command.target_pitch) ||
      !is_there(command.source, command.source_pitch)) {
    if (is_one_row) note_refused_copy(command.bytes);
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = command.source;
  copy.dstDevice = command.target;
  copy.srcPitch = command.source_pitch;
  copy.dstPitch = command.target_pitch;
  copy.WidthInBytes = command.bytes;
  copy.Height = command.rows;
  const CUresult status =
      is_one_row ? cuMemcpyDtoDAsync(command.target, command.source, command.bytes, stream)
                 : cuMemcpy2DAsync(&copy, stream);
  count(stream, {.bytes_moved = bytes_moved(command)});
  end_item({.name = "[memcpy]", .owner = "runtime"});
  return status;
}

CUresult Executor::fill(const Fill& command, std::string_view) {
  CUstream stream;
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t rows = command.rows, pitch = rows == 1 ? command.count : command.pitch;
  if (command.element_bytes != 1 || rows == 0 || rows > (1u << 30) || pitch < command.count ||
      pitch > (uint64_t{1} << 40) / rows ||
      !is_device_range(command.target, pitch * (rows - 1) + command.count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto value = static_cast<unsigned char>(command.value);
  const CUresult status =
      rows == 1 ? cuMemsetD8Async(command.target, value, command.count, stream)
                : cuMemsetD2D8Async(command.target, pitch, value, command.count, rows, stream);
  end_item({.name = "[memset]", .owner = "runtime"});
  return status;
}

// ---- The judge's side ---------------------------------------------------------------------------

uint64_t Executor::import_region(int descriptor, uint64_t bytes, std::span<const Extent> extents) {
  ++imports_;
  const std::lock_guard lock(mutex_);
  replies_behind_launches_ = 0;  // A call begins.
  cuCtxSetCurrent(context_);
  if (bytes == 0 || bytes % granularity_ != 0) return 0;
  Block block{bytes, 0};
  // The driver expects the descriptor's number in the pointer argument.
  void* source = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  if (cuMemImportFromShareableHandle(&block.handle, source,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
    return 0;
  }
  const auto block_there = region_map_.allocate(bytes);
  if (!block_there) {
    cuMemRelease(block.handle);
    return 0;
  }
  block.tensors = offsets_of(extents);
  const bool by_extents = is_in_software() && !extents.empty();
  const CUresult status = by_extents ? map_extents(block_there->address, extents, block)
                                     : map_at(block_there->address, bytes, block.handle);
  if (status != CUDA_SUCCESS) {
    region_map_.release(block_there->address);
    return 0;
  }
  const bool is_new = region_blocks_.emplace(block_there->address, block).second;
  MC_CHECK(is_new);
  is_taken_ = false;
  return block_there->address;
}

void Executor::release_region(uint64_t address) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  const auto found = region_blocks_.find(address);
  if (found == region_blocks_.end()) return;
  cuCtxSynchronize();
  unmap_block(address, found->second);
  MC_CHECK(region_map_.release(address).has_value());
  region_blocks_.erase(found);
  is_taken_ = false;
}

int Executor::export_parts(const Part* parts, size_t num_parts, uint64_t bytes) {
  MC_CHECK(parts != nullptr || num_parts == 0);
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  for (size_t i = 0; i < num_parts; ++i) {
    const Part& part = parts[i];
    if (part.bytes == 0) continue;
    if (!is_device_range(part.source, part.bytes) || part.bytes > bytes ||
        part.offset > bytes - part.bytes) {
      return -1;
    }
  }
  // Wait for the candidate's queued work; afterwards it cannot write until it has new inputs.
  CUresult status = cuCtxSynchronize();
  is_taken_ = true;
  Block block;
  const uint64_t address = map_new_region(bytes, block);
  if (address == 0) return kNoRoom;
  for (size_t i = 0; i < num_parts && status == CUDA_SUCCESS; ++i) {
    const Part& part = parts[i];
    if (part.bytes == 0) continue;
    status = cuMemcpyDtoDAsync(address + part.offset, part.source, part.bytes, CU_STREAM_LEGACY);
  }
  return exported(address, block, status);
}

// Unmaps the block and exports its descriptor; -1 if the commands that filled the memory failed.
int Executor::exported(uint64_t address, const Block& block, CUresult status) {
  MC_CHECK(address != 0);
  int descriptor = -1;
  const CUresult done = cuCtxSynchronize();
  if (status == CUDA_SUCCESS) status = done;
  if (status == CUDA_SUCCESS) {
    status = cuMemExportToShareableHandle(&descriptor, block.handle,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  }
  unmap_block(address, block);
  MC_CHECK(region_map_.release(address).has_value());
  return status == CUDA_SUCCESS ? descriptor : -1;
}

uint64_t Executor::map_new_region(uint64_t bytes, Block& block) {
  CUmemAllocationProp properties = properties_of_memory(device_);
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  block = {bytes, 0};
  if (cuMemCreate(&block.handle, bytes, &properties, 0) != CUDA_SUCCESS) return 0;
  const auto block_there = region_map_.allocate(bytes);
  if (!block_there) cuMemRelease(block.handle);
  if (!block_there || map_at(block_there->address, bytes, block.handle) != CUDA_SUCCESS) {
    if (block_there) region_map_.release(block_there->address);
    return 0;
  }
  return block_there->address;
}

}  // namespace mc::device
