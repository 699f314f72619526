// SPDX-License-Identifier: Apache-2.0
#include "cuda/executor.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace mc::device {
namespace {

constexpr uint32_t kHandlesMax = 1u << 20;
constexpr size_t kObjectsMax = 1u << 14;  // Streams, events and graphs, each.
constexpr size_t kFilesMax = 64;
constexpr uint64_t kPositionChecks = 4000;  // Looks at the ring before the receiver sleeps.
// Entries of a call in the device's queue that wait behind a gate; it has room for some 800.
constexpr uint32_t kEntriesMax = 600;
constexpr uint32_t kEntriesOfLibraryCall = 3;
constexpr uint32_t kStagedBytesMax = 64u << 10;  // More from the host waits for the stream.
constexpr uint32_t kFatbinMagic = 0xBA55ED50;

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  const timespec limit{0, 20'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

std::string name_of(CUresult status) {
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  return name == nullptr ? std::to_string(status) : name;
}

// A text that ends with a zero byte, in the bytes that follow a command's fixed part.
const char* text_in(const char* data, uint32_t bytes) {
  const bool ends = bytes > 0 && bytes <= kNameBytesMax && std::memchr(data, 0, bytes) != nullptr;
  return ends ? data : nullptr;
}

}  // namespace

// ---- Images -------------------------------------------------------------------------------------

std::unique_ptr<ImageFile> ImageFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status{};
  void* data = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && status.st_size > 0) {
    data =
        mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  close(descriptor);
  if (data == MAP_FAILED) return nullptr;
  return std::unique_ptr<ImageFile>(
      new ImageFile(static_cast<const char*>(data), static_cast<uint64_t>(status.st_size)));
}

ImageFile::~ImageFile() { munmap(const_cast<char*>(data_), bytes_); }

const void* ImageFile::image_at(uint64_t offset) const {
  struct FatbinHeader {
    uint32_t magic;
    uint16_t version;
    uint16_t header_bytes;
    uint64_t bytes;  // After the header.
  } header;
  if (offset % 8 != 0 || offset > bytes_ || bytes_ - offset < sizeof header) return nullptr;
  std::memcpy(&header, data_ + offset, sizeof header);
  if (header.magic != kFatbinMagic) return nullptr;
  const uint64_t left = bytes_ - offset;
  if (header.header_bytes > left || header.bytes > left - header.header_bytes) return nullptr;
  return data_ + offset;
}

// ---- Life ---------------------------------------------------------------------------------------

std::unique_ptr<Executor> Executor::create(const Options& options, std::string& why) {
  std::unique_ptr<Executor> executor(new Executor);
  executor->options_ = options;
  const auto failed = [&](const char* what, CUresult status) {
    if (status == CUDA_SUCCESS) return false;
    why = std::string(what) + " failed: " + name_of(status);
    return true;
  };
  if (failed("cuInit", cuInit(0)) || failed("cuDeviceGet", cuDeviceGet(&executor->device_, 0)) ||
      failed("cuDevicePrimaryCtxRetain",
             cuDevicePrimaryCtxRetain(&executor->context_, executor->device_)) ||
      failed("cuCtxSetCurrent", cuCtxSetCurrent(executor->context_))) {
    return nullptr;
  }
  CUdeviceptr arena = 0;
  if (failed("cuMemAddressReserve",
             cuMemAddressReserve(&arena, options.arena_bytes, kGranularity, 0, 0))) {
    return nullptr;
  }
  executor->arena_ = arena;
  CUdeviceptr regions = 0;
  if (failed("cuMemAddressReserve",
             cuMemAddressReserve(&regions, options.regions_bytes, kGranularity, 0, 0))) {
    return nullptr;
  }
  executor->regions_ = regions;
  executor->region_map_.open(regions, options.regions_bytes, options.regions_bytes);
  return executor;
}

Executor::~Executor() {
  if (page_ != nullptr) detach();
}

bool Executor::attach(int descriptor) {
  cuCtxSetCurrent(context_);
  void* memory = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return false;
  page_ = static_cast<Page*>(memory);
  ring_ = static_cast<const char*>(memory) + kPageBytes;
  reply_area_ = static_cast<char*>(memory) + kPageBytes + kRingBytes;
  position_ = 0;
  use_ = {};
  page_->arena = arena_;
  page_->arena_bytes = options_.arena_bytes;
  page_->memory_bytes_max = options_.memory_bytes_max;
  page_->regions = regions_;
  page_->regions_bytes = options_.regions_bytes;
  size_t total = 0;
  cuDeviceTotalMem(&total, device_);
  page_->total_bytes = total;
  cuDriverGetVersion(&page_->driver_version);
  for (int i = 1; i < kDeviceAttributesMax; ++i) {
    int value = 0;
    cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device_);
    page_->attributes[i] = value;
  }
  cuDeviceGetName(page_->name, sizeof page_->name, device_);
  CUuuid uuid{};
  cuDeviceGetUuid(&uuid, device_);
  std::memcpy(page_->uuid, &uuid, sizeof page_->uuid);
  cuDeviceGetPCIBusId(page_->pci_bus_id, sizeof page_->pci_bus_id, device_);
  return true;
}

void Executor::allow_file(std::string path_there, std::string path_here, bool is_own) {
  if (files_.size() >= kFilesMax) return;
  files_[std::move(path_there)] = {std::move(path_here), is_own, nullptr};
}

Use Executor::use() {
  const std::lock_guard lock(mutex_);
  return use_;
}

void Executor::allow_foreign_kernels(std::string pattern) {
  const std::lock_guard lock(mutex_);
  foreign_allowed_.push_back(std::move(pattern));
}

// A kernel, or a library's function.
bool Executor::may_run_foreign(const char* name) {
  const auto matches = [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), name, 0) == 0;
  };
  if (std::ranges::any_of(foreign_allowed_, matches)) return true;
  if (use_.forbidden.empty()) use_.forbidden = name;
  return false;
}

bool Executor::detach() {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  if (batch_ != nullptr) batch_->open_gate();
  CUresult status = cuCtxSynchronize();
  const auto also = [&](CUresult next) {
    if (status == CUDA_SUCCESS) status = next;
  };
  if (status == CUDA_SUCCESS && !libraries_.reset()) status = CUDA_ERROR_UNKNOWN;
  for (const auto& [handle, exec] : graph_execs_) also(cuGraphExecDestroy(exec));
  for (const auto& [handle, graph] : graphs_) also(cuGraphDestroy(graph));
  for (const auto& [handle, event] : events_) also(cuEventDestroy(event));
  for (const auto& [handle, stream] : streams_) also(cuStreamDestroy(stream));
  for (const auto& [handle, module] : modules_) {
    if (module.is_own) also(cuModuleUnload(module.module));
  }
  for (const CUevent event : joins_) also(cuEventDestroy(event));
  if (batch_ != nullptr) batch_->release();
  is_timed_ = false;
  joins_.clear();
  streams_used_.clear();
  slots_ = 0;
  for (const auto& [address, block] : blocks_) unmap_block(address, block);
  for (const auto& [address, block] : region_blocks_) {
    unmap_block(address, block);
    region_map_.release(address);
  }
  graph_execs_.clear();
  graphs_.clear();
  events_.clear();
  streams_.clear();
  functions_.clear();
  modules_.clear();
  variables_.clear();
  blocks_.clear();
  region_blocks_.clear();
  files_.clear();
  foreign_allowed_.clear();
  mapped_bytes_ = 0;
  if (page_ != nullptr) {
    page_->is_closed.store(1);
    futex_wake(page_->replies);
    munmap(page_, kChannelBytes);
    page_ = nullptr;
  }
  return status == CUDA_SUCCESS;
}

// ---- The ring -----------------------------------------------------------------------------------

void Executor::serve(const std::atomic<bool>& is_over) {
  cuCtxSetCurrent(context_);
  std::vector<char> command;
  uint64_t looks = 0;
  while (!is_over.load()) {
    const uint64_t written = page_->written.load(std::memory_order_acquire);
    if (written == position_) {
      if (++looks < kPositionChecks) {
        __builtin_ia32_pause();
        continue;
      }
      page_->wake.store(0, std::memory_order_seq_cst);
      if (page_->written.load(std::memory_order_seq_cst) == position_) futex_wait(page_->wake, 0);
      page_->wake.store(1, std::memory_order_seq_cst);
      continue;
    }
    looks = 0;
    const uint64_t offset = position_ % kRingBytes;
    Header header;
    std::memcpy(&header, ring_ + offset, sizeof header);
    const uint64_t left = std::min(written - position_, kRingBytes - offset);
    const uint32_t limit =
        header.op == Op::kPad ? static_cast<uint32_t>(kRingBytes) : kCommandBytesMax;
    if (header.bytes < sizeof header || header.bytes > limit || header.bytes > left ||
        header.bytes % kCommandAlignment != 0 || static_cast<uint32_t>(header.op) >= kOps) {
      page_->is_closed.store(1);
      futex_wake(page_->replies);
      return;
    }
    if (header.op != Op::kPad) {
      const uint32_t body_bytes = header.bytes - static_cast<uint32_t>(sizeof header);
      command.assign(ring_ + offset + sizeof header, ring_ + offset + header.bytes);
      const std::lock_guard lock(mutex_);
      execute(header.op, command.data(), body_bytes);
    }
    position_ += header.bytes;
    page_->read.store(position_, std::memory_order_release);
  }
}

void Executor::reply(CUresult status, const void* data, size_t bytes) {
  if (data != nullptr && data != reply_area_) std::memcpy(reply_area_, data, bytes);
  page_->reply_status = static_cast<uint32_t>(status);
  page_->reply_bytes = static_cast<uint32_t>(bytes);
  page_->replies.fetch_add(1, std::memory_order_release);
  futex_wake(page_->replies);
}

void Executor::fail(CUresult status) {
  if (status == CUDA_SUCCESS) return;
  uint32_t none = 0;
  page_->error.compare_exchange_strong(none, static_cast<uint32_t>(status));
}

// ---- Handles ------------------------------------------------------------------------------------

bool Executor::stream_of(uint32_t handle, CUstream& stream) {
  if (handle < kFirstStream) {
    stream = handle == 2 ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  } else {
    const auto found = streams_.find(handle);
    if (found == streams_.end()) return false;
    stream = found->second;
  }
  const bool is_in_call = batch_ != nullptr && batch_->is_in_call();
  if (is_in_call && stream != CU_STREAM_LEGACY &&
      std::ranges::find(streams_used_, stream) == streams_used_.end()) {
    // Nothing of the call may run before its time begins.
    const bool is_held = cuStreamWaitEvent(stream, batch_->start_event(), 0) == CUDA_SUCCESS;
    has_failed_ = has_failed_ || !is_held;
    streams_used_.push_back(stream);
  }
  if (is_in_call && items_.is_on()) {
    has_failed_ = items_.begin(stream) != CUDA_SUCCESS || has_failed_;
  }
  return true;
}

CUevent Executor::event_of(uint32_t handle) const {
  const auto found = events_.find(handle);
  return found == events_.end() ? nullptr : found->second;
}

bool Executor::is_device_range(uint64_t address, uint64_t bytes) const {
  const auto is_in = [&](uint64_t start, uint64_t size) {
    return address >= start && bytes <= size && address - start <= size - bytes;
  };
  if (is_in(arena_, options_.arena_bytes) || is_in(regions_, options_.regions_bytes)) return true;
  auto next = variables_.upper_bound(address);
  if (next == variables_.begin()) return false;
  --next;
  return is_in(next->first, next->second);
}

bool Executor::is_capturing(CUstream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// ---- Memory -------------------------------------------------------------------------------------

CUresult Executor::map(const Map& command) {
  const uint64_t end = command.address + command.bytes;
  const auto next = blocks_.lower_bound(command.address);
  const bool overlaps = (next != blocks_.end() && next->first < end) ||
                        (next != blocks_.begin() &&
                         std::prev(next)->first + std::prev(next)->second.bytes > command.address);
  if (command.bytes == 0 || command.bytes > options_.memory_bytes_max ||
      command.address % kGranularity != 0 || command.bytes % kGranularity != 0 ||
      command.address < arena_ || command.address > arena_ + options_.arena_bytes ||
      end > arena_ + options_.arena_bytes || overlaps) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (mapped_bytes_ + command.bytes > options_.memory_bytes_max) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  Block block{command.bytes, 0};
  if (const CUresult status = cuMemCreate(&block.handle, command.bytes, &properties, 0)) {
    return status;
  }
  if (const CUresult status = map_at(command.address, command.bytes, block.handle)) return status;
  blocks_.emplace(command.address, block);
  mapped_bytes_ += command.bytes;
  // All ones is NaN for every floating type.  Streams that do not wait for the default one may use
  // the memory next.
  const CUresult status =
      cuMemsetD32Async(command.address, ~0u, command.bytes / 4, CU_STREAM_PER_THREAD);
  return status != CUDA_SUCCESS ? status : cuStreamSynchronize(CU_STREAM_PER_THREAD);
}

// Takes the handle: it is released where the memory cannot be mapped.
CUresult Executor::map_at(uint64_t address, uint64_t bytes, CUmemGenericAllocationHandle handle) {
  CUmemAccessDesc access{};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  CUresult status = cuMemMap(address, bytes, 0, handle, 0);
  if (status == CUDA_SUCCESS) {
    status = cuMemSetAccess(address, bytes, &access, 1);
    if (status != CUDA_SUCCESS) cuMemUnmap(address, bytes);
  }
  if (status != CUDA_SUCCESS) cuMemRelease(handle);
  return status;
}

void Executor::unmap_block(uint64_t address, const Block& block) {
  cuMemUnmap(address, block.bytes);
  cuMemRelease(block.handle);
}

CUresult Executor::unmap(const Map& command) {
  const auto found = blocks_.find(command.address);
  if (found == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = cuCtxSynchronize();
  unmap_block(found->first, found->second);
  mapped_bytes_ -= found->second.bytes;
  blocks_.erase(found);
  return status;
}

CUresult Executor::write(const Write& command, const char* data, uint32_t bytes) {
  CUstream stream;
  if (command.bytes > bytes || !is_device_range(command.target, command.bytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  if (is_capturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  // The driver has copied pageable memory before it returns.
  return cuMemcpyHtoDAsync(command.target, data, command.bytes, stream);
}

void Executor::read(const Read& command) {
  CUstream stream;
  if (command.rows != 1 || command.bytes > kReplyBytesMax ||
      !is_device_range(command.source, command.bytes)) {
    return reply(CUDA_ERROR_INVALID_VALUE);
  }
  if (!stream_of(command.stream, stream)) return reply(CUDA_ERROR_INVALID_HANDLE);
  use_.bytes_to_host += command.bytes;
  CUresult status = cuMemcpyDtoHAsync(reply_area_, command.source, command.bytes, stream);
  if (status == CUDA_SUCCESS) status = cuStreamSynchronize(stream);
  reply(status, reply_area_, status == CUDA_SUCCESS ? command.bytes : 0);
}

CUresult Executor::copy(const Copy& command) {
  CUstream stream;
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const auto last = [](uint64_t pitch, uint64_t rows, uint64_t bytes) {
    return rows > (1u << 30) || pitch > (uint64_t{1} << 32) ? ~uint64_t{0}
                                                            : pitch * (rows - 1) + bytes;
  };
  if (command.rows == 0 || command.bytes == 0) return CUDA_SUCCESS;
  if (command.rows == 1) {
    if (!is_device_range(command.target, command.bytes) ||
        !is_device_range(command.source, command.bytes)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return cuMemcpyDtoDAsync(command.target, command.source, command.bytes, stream);
  }
  if (command.target_pitch < command.bytes || command.source_pitch < command.bytes ||
      !is_device_range(command.target, last(command.target_pitch, command.rows, command.bytes)) ||
      !is_device_range(command.source, last(command.source_pitch, command.rows, command.bytes))) {
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
  return cuMemcpy2DAsync(&copy, stream);
}

CUresult Executor::fill(const Fill& command) {
  CUstream stream;
  if (!stream_of(command.stream, stream)) return CUDA_ERROR_INVALID_HANDLE;
  const uint64_t rows = command.rows, pitch = rows == 1 ? command.count : command.pitch;
  if (command.element_bytes != 1 || rows == 0 || rows > (1u << 30) || pitch < command.count ||
      pitch > (uint64_t{1} << 40) / rows ||
      !is_device_range(command.target, pitch * (rows - 1) + command.count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto value = static_cast<unsigned char>(command.value);
  if (rows == 1) return cuMemsetD8Async(command.target, value, command.count, stream);
  return cuMemsetD2D8Async(command.target, pitch, value, command.count, rows, stream);
}

// ---- The judge's side ---------------------------------------------------------------------------

uint64_t Executor::import_region(int descriptor, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  if (bytes == 0 || bytes % kGranularity != 0) return 0;
  Block block{bytes, 0};
  // The driver takes the descriptor's number in place of a pointer.
  void* source = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  if (cuMemImportFromShareableHandle(&block.handle, source,
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != CUDA_SUCCESS) {
    return 0;
  }
  const auto place = region_map_.allocate(bytes);
  if (!place) {
    cuMemRelease(block.handle);
    return 0;
  }
  if (map_at(place->address, bytes, block.handle) != CUDA_SUCCESS) {
    region_map_.release(place->address);
    return 0;
  }
  region_blocks_.emplace(place->address, block);
  return place->address;
}

void Executor::release_region(uint64_t address) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  const auto found = region_blocks_.find(address);
  if (found == region_blocks_.end()) return;
  cuCtxSynchronize();
  unmap_block(address, found->second);
  region_map_.release(address);
  region_blocks_.erase(found);
}

int Executor::export_parts(const Part* parts, size_t num_parts, uint64_t bytes) {
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
  Block block;
  const uint64_t place = map_new_region(bytes, block);
  if (place == 0) return -1;
  CUresult status = CUDA_SUCCESS;
  for (size_t i = 0; i < num_parts && status == CUDA_SUCCESS; ++i) {
    const Part& part = parts[i];
    if (part.bytes == 0) continue;
    status = cuMemcpyDtoDAsync(place + part.offset, part.source, part.bytes, CU_STREAM_LEGACY);
  }
  return exported(place, block, status);
}

// Ends the mapping; -1 where what filled the memory failed.
int Executor::exported(uint64_t place, const Block& block, CUresult status) {
  int descriptor = -1;
  const CUresult done = cuCtxSynchronize();
  if (status == CUDA_SUCCESS) status = done;
  if (status == CUDA_SUCCESS) {
    status = cuMemExportToShareableHandle(&descriptor, block.handle,
                                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  }
  unmap_block(place, block);
  region_map_.release(place);
  return status == CUDA_SUCCESS ? descriptor : -1;
}

uint64_t Executor::map_new_region(uint64_t bytes, Block& block) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device_}};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  block = {bytes, 0};
  if (cuMemCreate(&block.handle, bytes, &properties, 0) != CUDA_SUCCESS) return 0;
  const auto place = region_map_.allocate(bytes);
  if (!place) cuMemRelease(block.handle);
  if (!place || map_at(place->address, bytes, block.handle) != CUDA_SUCCESS) {
    if (place) region_map_.release(place->address);
    return 0;
  }
  return place->address;
}

// ---- Timing -------------------------------------------------------------------------------------

uint64_t Executor::prepare_batches(uint32_t calls, const CallBytes& bytes) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  std::string why;
  if (batch_ == nullptr) batch_ = TimedBatch::create(device_, why);
  if (batch_ == nullptr || batch_->prepare(calls, bytes) != CUDA_SUCCESS) return 0;
  is_timed_ = true;
  if (slots_ != 0 && bytes.inputs <= call_bytes_.inputs) return slots_;
  const uint64_t slots_bytes =
      std::max(kGranularity, (2 * bytes.inputs + kGranularity - 1) / kGranularity * kGranularity);
  Block block;
  slots_ = map_new_region(slots_bytes, block);
  if (slots_ != 0) region_blocks_.emplace(slots_, block);
  call_bytes_ = bytes;
  return slots_;
}

bool Executor::start_batch(int descriptor, uint64_t bytes, uint32_t calls, Manner manner) {
  const uint64_t inputs = import_region(descriptor, bytes);
  if (inputs == 0) return false;
  bool is_started = false;
  {
    const std::lock_guard lock(mutex_);
    // Kernels that were queued before may still run, and see what is unmapped again below.
    if (batch_ != nullptr && cuCtxSynchronize() == CUDA_SUCCESS &&
        calls * call_bytes_.inputs <= bytes) {
      has_failed_ = false;
      launches_own_.clear();
      was_long_.clear();
      items_.start(manner == Manner::kItemised);
      is_started = batch_->start(calls, inputs, slots_, manner == Manner::kGated) == CUDA_SUCCESS;
    }
  }
  release_region(inputs);
  return is_started;
}

// A candidate that is timed has the device in calls alone.  A command that waits for the device
// opens the gate of the call that is under way; one that asks whether it is done does not, as
// PyTorch's allocator does after record_stream(), and who asks again and again waits for it to
// open.
bool Executor::is_allowed_now(Op op, uint32_t bytes) {
  if (!is_timed_) return true;
  switch (op) {
    case Op::kMap:
    case Op::kLaunch:
    case Op::kLaunchGraph:
    case Op::kCopy:
    case Op::kFill:
    case Op::kWrite:
    case Op::kRead:
    case Op::kLibraryCall:
      if (!batch_->is_in_call()) return false;
      break;
    default:
      if (!batch_->is_in_call()) return true;
  }
  switch (op) {
    case Op::kLaunch:
    case Op::kLaunchGraph:
    case Op::kCopy:
    case Op::kFill:
    case Op::kRecordEvent:
    case Op::kWaitEvent:
      if (++entries_ > kEntriesMax) batch_->open_gate();
      return true;
    case Op::kWrite:
      if (++entries_ > kEntriesMax || bytes > kStagedBytesMax) batch_->open_gate();
      return true;
    case Op::kPad:
    case Op::kSetAttribute:
    case Op::kOccupancy:
    case Op::kCreateStream:
    case Op::kCreateEvent:
    case Op::kQueryStream:
    case Op::kQueryEvent:
    case Op::kCaptureInfo:
    case Op::kLibraryCall:
    case Op::kBeginCall:
    case Op::kEndCall:
    case Op::kUnsupported:
      return true;
    default:
      batch_->open_gate();
      return true;
  }
}

CUresult Executor::begin_call(const Call& command) {
  if (batch_ == nullptr || !batch_->may_begin(command.call)) return CUDA_ERROR_NOT_PERMITTED;
  entries_ = 0;
  num_joins_ = 0;
  streams_used_.clear();
  launches_own_before_ = use_.launches_own;
  return batch_->begin_call();
}

// Whatever the call queued in the stream belongs to its time.
CUresult Executor::join(CUstream stream) {
  if (joins_.size() <= num_joins_) {
    CUevent event = nullptr;
    if (const CUresult status = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)) return status;
    joins_.push_back(event);
  }
  const CUevent event = joins_[num_joins_++];
  const CUresult status = cuEventRecord(event, stream);
  return status == CUDA_SUCCESS ? cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0) : status;
}

CUresult Executor::end_call(const Call& command, const char* data, uint32_t bytes) {
  if (batch_ == nullptr || !batch_->is_in_call() || command.call + 1 != batch_->calls_begun()) {
    return CUDA_ERROR_NOT_PERMITTED;
  }
  std::vector<OutputPart> parts(bytes / sizeof(OutputPart));
  if (command.num_parts > parts.size()) return CUDA_ERROR_INVALID_VALUE;
  parts.resize(command.num_parts);
  std::memcpy(parts.data(), data, parts.size() * sizeof(OutputPart));
  for (const OutputPart& part : parts) {
    const bool is_there = part.bytes == 0 || is_device_range(part.source, part.bytes);
    if (!is_there || part.bytes > options_.memory_bytes_max) return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult status = CUDA_SUCCESS;
  for (const CUstream stream : streams_used_) {
    if (status == CUDA_SUCCESS) status = join(stream);
  }
  launches_own_.push_back(static_cast<uint32_t>(use_.launches_own - launches_own_before_));
  was_long_.push_back(entries_ > kEntriesMax);
  const CUresult ended = batch_->end_call(parts);
  return status == CUDA_SUCCESS ? ended : status;
}

bool Executor::finish_batch(std::vector<TimedCall>& calls) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  calls.clear();
  if (batch_ == nullptr) return false;
  batch_->open_gate();
  const bool is_done = cuCtxSynchronize() == CUDA_SUCCESS;
  std::vector<Stopwatch::Call> times;
  if (batch_->finish(times) != CUDA_SUCCESS || !is_done || has_failed_) return false;
  for (size_t i = 0; i < times.size(); ++i) {
    calls.push_back({times[i].us, times[i].host_us, launches_own_[i],
                     times[i].was_queued_whole ? 1u : 0u, was_long_[i] ? 1u : 0u});
  }
  return true;
}

bool Executor::take_items(std::vector<CallItem>& items) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  return items_.take(items) == CUDA_SUCCESS;
}

int Executor::export_outputs(uint32_t call, const uint64_t* bytes, size_t num_parts) {
  const std::lock_guard lock(mutex_);
  cuCtxSetCurrent(context_);
  const std::vector<OutputPart>* parts = batch_ == nullptr ? nullptr : batch_->parts_of(call);
  if (parts == nullptr || parts->size() != num_parts) return -1;
  uint64_t end = 0;
  for (size_t i = 0; i < num_parts; ++i) {
    if ((*parts)[i].bytes != bytes[i]) return -1;
    end += TimedBatch::rounded(bytes[i]);
  }
  Block block;
  const uint64_t place = map_new_region(
      std::max(kGranularity, (end + kGranularity - 1) / kGranularity * kGranularity), block);
  if (place == 0) return -1;
  return exported(place, block, batch_->copy_outputs(call, place));
}

// ---- Modules ------------------------------------------------------------------------------------

CUresult Executor::load_module(const LoadModule& command, std::string_view path) {
  const auto file = files_.find(std::string(path));
  if (file == files_.end()) return CUDA_ERROR_FILE_NOT_FOUND;
  if (command.module > kHandlesMax || modules_.contains(command.module)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  File& entry = file->second;
  Module module{nullptr, entry.is_own, entry.path_here};
  CUmodule& kept = kept_modules_[{entry.path_here, command.offset}];
  if (entry.is_own || kept == nullptr) {
    if (entry.file == nullptr) entry.file = ImageFile::open(entry.path_here);
    const void* image = entry.file == nullptr ? nullptr : entry.file->image_at(command.offset);
    if (image == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    if (const CUresult status = cuModuleLoadData(&module.module, image)) return status;
    if (!entry.is_own) kept = module.module;
  } else {
    module.module = kept;
  }
  modules_.emplace(command.module, module);
  return CUDA_SUCCESS;
}

CUresult Executor::find_function(const Find& command, const char* name, FunctionFacts& facts) {
  const auto module = modules_.find(command.module);
  if (module == modules_.end() || command.function > kHandlesMax || name == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!module->second.is_own && !may_run_foreign(name)) return CUDA_ERROR_NOT_PERMITTED;
  FunctionEntry entry{nullptr, module->second.is_own, {}};
  if (const CUresult status = cuModuleGetFunction(&entry.function, module->second.module, name)) {
    return status;
  }
  for (uint32_t i = 0; i < kFunctionAttributes; ++i) {
    cuFuncGetAttribute(&facts.attributes[i], static_cast<CUfunction_attribute>(i), entry.function);
  }
  entry.item.name = name;
  if (!entry.is_own) entry.item.owner = module->second.path;
  entry.item.registers = static_cast<uint32_t>(facts.attributes[CU_FUNC_ATTRIBUTE_NUM_REGS]);
  entry.item.shared_bytes =
      static_cast<uint32_t>(facts.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES]);
  size_t offset = 0, bytes = 0;
  while (facts.num_parameters < kParametersMax &&
         cuFuncGetParamInfo(entry.function, facts.num_parameters, &offset, &bytes) ==
             CUDA_SUCCESS) {
    facts.parameters[facts.num_parameters++] = {static_cast<uint32_t>(offset),
                                                static_cast<uint32_t>(bytes)};
  }
  functions_[command.function] = std::move(entry);
  return CUDA_SUCCESS;
}

CUresult Executor::find_variable(const Find& command, const char* name, VariableFacts& facts) {
  const auto module = modules_.find(command.module);
  if (module == modules_.end() || name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult status = cuModuleGetGlobal(&address, &bytes, module->second.module, name);
  facts = {address, bytes};
  if (status == CUDA_SUCCESS) variables_[address] = bytes;
  return status;
}

CUresult Executor::launch(const Launch& command, const char* arguments) {
  const auto function = functions_.find(command.function);
  CUlaunchConfig config{};
  if (function == functions_.end() || !stream_of(command.stream, config.hStream)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  config.gridDimX = command.grid[0];
  config.gridDimY = command.grid[1];
  config.gridDimZ = command.grid[2];
  config.blockDimX = command.block[0];
  config.blockDimY = command.block[1];
  config.blockDimZ = command.block[2];
  config.sharedMemBytes = command.shared_bytes;
  CUlaunchAttribute attributes[2];
  config.attrs = attributes;
  if (command.cluster[0] != 0) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {command.cluster[0], command.cluster[1], command.cluster[2]};
  }
  if (command.is_cooperative != 0) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  size_t bytes = command.argument_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<char*>(arguments),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  ++use_.launches;
  if (function->second.is_own) ++use_.launches_own;
  const CUresult status =
      cuLaunchKernelEx(&config, function->second.function, nullptr, bytes > 0 ? extra : nullptr);
  if (items_.is_on()) {
    CallItem item = function->second.item;
    std::ranges::copy(command.grid, item.grid);
    std::ranges::copy(command.block, item.block);
    item.shared_bytes += command.shared_bytes;
    end_item(std::move(item));
  }
  return status;
}

// Ends the piece that a command queued last, in a batch that is told piece by piece.
void Executor::end_item(CallItem item) {
  has_failed_ = items_.end(std::move(item)) != CUDA_SUCCESS || has_failed_;
}

// A library's function counts as one launch, whatever it launches.
CUresult Executor::call_library(const LibraryCall& command, const char* data, uint32_t bytes,
                                std::vector<uint64_t>& answer) {
  if (command.function >= kNumLibraryFunctions || command.num_words > bytes / 8) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const LibraryFunction& function = kLibraryFunctions[command.function];
  if (!may_run_foreign(function.name)) return CUDA_ERROR_NOT_PERMITTED;
  std::vector<uint64_t> words(command.num_words);
  std::memcpy(words.data(), data, words.size() * 8);
  if (!libraries_.call(command.function, words, answer) || answer.size() * 8 > kReplyBytesMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!may_launch(function)) return CUDA_SUCCESS;
  ++use_.launches;
  if (batch_ != nullptr && batch_->is_in_call() &&
      (entries_ += kEntriesOfLibraryCall) > kEntriesMax) {
    batch_->open_gate();
  }
  const bool is_dnn = std::string_view(function.name).starts_with("cudnn");
  end_item({.name = function.name, .owner = is_dnn ? "cuDNN" : "cuBLAS"});
  return CUDA_SUCCESS;
}

// An answer is a byte, of which a candidate that asks until it is done has one.
void Executor::answer_query(CUresult status) {
  if (status == CUDA_SUCCESS) ++use_.bytes_to_host;
  reply(status);
}

CUresult Executor::elapsed(const Elapsed& command, float& ms) {
  use_.bytes_to_host += sizeof ms;
  const CUevent start = event_of(command.start), end = event_of(command.end);
  if (start == nullptr || end == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return cuEventElapsedTime(&ms, start, end);
}

// ---- Commands -----------------------------------------------------------------------------------

void Executor::execute(Op op, const char* body, uint32_t bytes) {
  // The command's fixed part; the rest follows it.
  const auto take = [&]<typename Command>(Command& command) {
    if (bytes < sizeof command) return false;
    std::memcpy(&command, body, sizeof command);
    body += sizeof command;
    bytes -= static_cast<uint32_t>(sizeof command);
    return true;
  };
  Handle handle{};
  CUstream stream = nullptr;
  items_.cancel();
  if (!is_allowed_now(op, bytes)) {
    has_failed_ = true;
    LibraryCall call{};
    const bool is_answered =
        op == Op::kRead || (op == Op::kLibraryCall && take(call) && call.is_answered != 0);
    return is_answered ? reply(CUDA_ERROR_NOT_PERMITTED) : fail(CUDA_ERROR_NOT_PERMITTED);
  }
  switch (op) {
    case Op::kMap: {
      Map command;
      return fail(take(command) ? map(command) : CUDA_ERROR_INVALID_VALUE);
    }
    case Op::kUnmap: {
      Map command;
      return fail(take(command) ? unmap(command) : CUDA_ERROR_INVALID_VALUE);
    }
    case Op::kWrite: {
      Write command;
      fail(take(command) ? write(command, body, bytes) : CUDA_ERROR_INVALID_VALUE);
      return end_item({.name = "[memcpy]", .owner = "runtime"});
    }
    case Op::kRead: {
      Read command;
      return take(command) ? read(command) : reply(CUDA_ERROR_INVALID_VALUE);
    }
    case Op::kCopy: {
      Copy command;
      fail(take(command) ? copy(command) : CUDA_ERROR_INVALID_VALUE);
      return end_item({.name = "[memcpy]", .owner = "runtime"});
    }
    case Op::kFill: {
      Fill command;
      fail(take(command) ? fill(command) : CUDA_ERROR_INVALID_VALUE);
      return end_item({.name = "[memset]", .owner = "runtime"});
    }
    case Op::kLoadModule: {
      LoadModule command;
      const char* path = take(command) ? text_in(body, bytes) : nullptr;
      return reply(path == nullptr ? CUDA_ERROR_INVALID_VALUE : load_module(command, path));
    }
    case Op::kUnloadModule: {
      if (!take(handle)) return fail(CUDA_ERROR_INVALID_VALUE);
      const auto found = modules_.find(handle.handle);
      if (found == modules_.end()) return fail(CUDA_ERROR_INVALID_HANDLE);
      // Functions of an unloaded module must not be launched, so it stays until the candidate ends.
      return;
    }
    case Op::kFindFunction: {
      Find command;
      FunctionFacts facts{};
      const CUresult status = take(command) ? find_function(command, text_in(body, bytes), facts)
                                            : CUDA_ERROR_INVALID_VALUE;
      return reply(status, &facts, sizeof facts);
    }
    case Op::kFindVariable: {
      Find command;
      VariableFacts facts{};
      const CUresult status = take(command) ? find_variable(command, text_in(body, bytes), facts)
                                            : CUDA_ERROR_INVALID_VALUE;
      return reply(status, &facts, sizeof facts);
    }
    case Op::kSetAttribute: {
      SetAttribute command;
      if (!take(command)) return fail(CUDA_ERROR_INVALID_VALUE);
      const auto found = functions_.find(command.function);
      if (found == functions_.end()) return fail(CUDA_ERROR_INVALID_HANDLE);
      return fail(cuFuncSetAttribute(found->second.function,
                                     static_cast<CUfunction_attribute>(command.attribute),
                                     command.value));
    }
    case Op::kOccupancy: {
      Occupancy command;
      int32_t blocks = 0;
      if (!take(command)) return reply(CUDA_ERROR_INVALID_VALUE);
      const auto found = functions_.find(command.function);
      if (found == functions_.end()) return reply(CUDA_ERROR_INVALID_HANDLE);
      const CUresult status = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
          &blocks, found->second.function, command.block_threads, command.shared_bytes,
          command.flags);
      return reply(status, &blocks, sizeof blocks);
    }
    case Op::kLaunch: {
      Launch command;
      const bool is_whole = take(command) && command.argument_bytes <= bytes &&
                            command.argument_bytes <= kArgumentBytesMax;
      return fail(is_whole ? launch(command, body) : CUDA_ERROR_INVALID_VALUE);
    }
    case Op::kCreateStream: {
      CreateStream command;
      if (!take(command) || command.stream < kFirstStream || streams_.contains(command.stream) ||
          streams_.size() >= kObjectsMax) {
        return fail(CUDA_ERROR_INVALID_VALUE);
      }
      const CUresult status = cuStreamCreateWithPriority(&stream, command.flags, command.priority);
      if (status == CUDA_SUCCESS) streams_.emplace(command.stream, stream);
      return fail(status);
    }
    case Op::kDestroyStream: {
      if (!take(handle)) return fail(CUDA_ERROR_INVALID_VALUE);
      const auto found = streams_.find(handle.handle);
      if (found == streams_.end()) return fail(CUDA_ERROR_INVALID_HANDLE);
      if (std::erase(streams_used_, found->second) > 0) {
        has_failed_ = join(found->second) != CUDA_SUCCESS || has_failed_;
      }
      const CUresult status = cuStreamDestroy(found->second);
      streams_.erase(found);
      return fail(status);
    }
    case Op::kCreateEvent: {
      CreateEvent command;
      CUevent event = nullptr;
      if (!take(command) || events_.contains(command.event) || events_.size() >= kObjectsMax) {
        return fail(CUDA_ERROR_INVALID_VALUE);
      }
      const CUresult status = cuEventCreate(&event, command.flags);
      if (status == CUDA_SUCCESS) events_.emplace(command.event, event);
      return fail(status);
    }
    case Op::kDestroyEvent: {
      if (!take(handle)) return fail(CUDA_ERROR_INVALID_VALUE);
      const auto found = events_.find(handle.handle);
      if (found == events_.end()) return fail(CUDA_ERROR_INVALID_HANDLE);
      const CUresult status = cuEventDestroy(found->second);
      events_.erase(found);
      return fail(status);
    }
    case Op::kRecordEvent:
    case Op::kWaitEvent: {
      StreamEvent command;
      if (!take(command)) return fail(CUDA_ERROR_INVALID_VALUE);
      const CUevent event = event_of(command.event);
      if (event == nullptr || !stream_of(command.stream, stream)) {
        return fail(CUDA_ERROR_INVALID_HANDLE);
      }
      return fail(op == Op::kRecordEvent ? cuEventRecordWithFlags(event, stream, command.flags)
                                         : cuStreamWaitEvent(stream, event, command.flags));
    }
    case Op::kElapsed: {
      Elapsed command;
      float ms = 0;
      const CUresult status = take(command) ? elapsed(command, ms) : CUDA_ERROR_INVALID_VALUE;
      return reply(status, &ms, sizeof ms);
    }
    case Op::kQueryStream:
    case Op::kSynchronize: {
      if (!take(handle)) return reply(CUDA_ERROR_INVALID_VALUE);
      if (op == Op::kSynchronize && handle.handle == kWholeDevice) return reply(cuCtxSynchronize());
      if (!stream_of(handle.handle, stream)) return reply(CUDA_ERROR_INVALID_HANDLE);
      return op == Op::kQueryStream ? answer_query(cuStreamQuery(stream))
                                    : reply(cuStreamSynchronize(stream));
    }
    case Op::kQueryEvent:
    case Op::kSynchronizeEvent: {
      const CUevent event = take(handle) ? event_of(handle.handle) : nullptr;
      if (event == nullptr) return reply(CUDA_ERROR_INVALID_HANDLE);
      return op == Op::kQueryEvent ? answer_query(cuEventQuery(event))
                                   : reply(cuEventSynchronize(event));
    }
    case Op::kBeginCapture: {
      Capture command;
      if (!take(command) || !stream_of(command.stream, stream) || command.mode > 2) {
        return fail(CUDA_ERROR_INVALID_VALUE);
      }
      // The receiver serves all threads of the candidate, so a mode of one thread means nothing.
      return fail(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    }
    case Op::kEndCapture: {
      Capture command;
      CUgraph graph = nullptr;
      if (!take(command) || !stream_of(command.stream, stream) || graphs_.contains(command.graph) ||
          graphs_.size() >= kObjectsMax) {
        return reply(CUDA_ERROR_INVALID_VALUE);
      }
      const CUresult status = cuStreamEndCapture(stream, &graph);
      if (status == CUDA_SUCCESS && graph != nullptr) graphs_.emplace(command.graph, graph);
      return reply(status);
    }
    case Op::kCaptureInfo: {
      if (!take(handle) || !stream_of(handle.handle, stream)) {
        return reply(CUDA_ERROR_INVALID_HANDLE);
      }
      CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
      cuuint64_t id = 0;
      const CUresult status =
          cuStreamGetCaptureInfo(stream, &capture, &id, nullptr, nullptr, nullptr, nullptr);
      const CaptureFacts facts{id, static_cast<uint32_t>(capture)};
      return reply(status, &facts, sizeof facts);
    }
    case Op::kInstantiate: {
      Graph command;
      CUgraphExec exec = nullptr;
      if (!take(command) || !graphs_.contains(command.graph) ||
          graph_execs_.contains(command.exec) || graph_execs_.size() >= kObjectsMax) {
        return reply(CUDA_ERROR_INVALID_HANDLE);
      }
      const CUresult status = cuGraphInstantiate(&exec, graphs_[command.graph], 0);
      if (status == CUDA_SUCCESS) graph_execs_.emplace(command.exec, exec);
      return reply(status);
    }
    case Op::kLaunchGraph: {
      Graph command;
      if (!take(command) || !graph_execs_.contains(command.exec) ||
          !stream_of(command.stream, stream)) {
        return fail(CUDA_ERROR_INVALID_HANDLE);
      }
      ++use_.launches;
      ++use_.launches_own;
      fail(cuGraphLaunch(graph_execs_[command.exec], stream));
      return end_item({.name = "[graph]", .owner = ""});
    }
    case Op::kDestroyGraph: {
      if (!take(handle) || !graphs_.contains(handle.handle)) return fail(CUDA_ERROR_INVALID_HANDLE);
      const CUresult status = cuGraphDestroy(graphs_[handle.handle]);
      graphs_.erase(handle.handle);
      return fail(status);
    }
    case Op::kDestroyGraphExec: {
      if (!take(handle) || !graph_execs_.contains(handle.handle)) {
        return fail(CUDA_ERROR_INVALID_HANDLE);
      }
      const CUresult status = cuGraphExecDestroy(graph_execs_[handle.handle]);
      graph_execs_.erase(handle.handle);
      return fail(status);
    }
    case Op::kBeginCall: {
      Call command;
      const CUresult status = take(command) ? begin_call(command) : CUDA_ERROR_INVALID_VALUE;
      has_failed_ = has_failed_ || status != CUDA_SUCCESS;
      return fail(status);
    }
    case Op::kEndCall: {
      Call command;
      const CUresult status =
          take(command) ? end_call(command, body, bytes) : CUDA_ERROR_INVALID_VALUE;
      has_failed_ = has_failed_ || status != CUDA_SUCCESS;
      return fail(status);
    }
    case Op::kLibraryCall: {
      LibraryCall command{};
      std::vector<uint64_t> answer;
      const CUresult status =
          take(command) ? call_library(command, body, bytes, answer) : CUDA_ERROR_INVALID_VALUE;
      if (command.is_answered != 0) return reply(status, answer.data(), answer.size() * 8);
      const bool is_done = status == CUDA_SUCCESS && answer[0] == 0;
      has_failed_ = has_failed_ || !is_done;
      return fail(is_done || status != CUDA_SUCCESS ? status : CUDA_ERROR_UNKNOWN);
    }
    case Op::kUnsupported: {
      const char* name = take(handle) ? text_in(body, bytes) : nullptr;
      if (name != nullptr && use_.unsupported.empty()) use_.unsupported = name;
      return;
    }
    case Op::kPad:
      return;
  }
}

}  // namespace mc::device
