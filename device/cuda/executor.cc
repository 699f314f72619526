// SPDX-License-Identifier: Apache-2.0
#include "cuda/executor.h"

#include <fnmatch.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#include "check.h"
#include "cuda/kernels.h"

namespace mc::device {
namespace {

// Per call, the number of replies after launches that are sent at once, and the number that are
// sent after a short delay (delay_reply()).
constexpr uint64_t kPromptReplies = 64, kShortDelays = 256;
constexpr int kShortDelayUs = 2'000, kLongDelayUs = 10'000;
constexpr size_t kFilesMax = 64;
constexpr std::chrono::milliseconds kWaitMax{20};
// The client recognises device memory by its address, so device addresses must differ from those of
// the candidate process, which are near the ends of the 47-bit range.
constexpr CUdeviceptr kFarFromTheHosts = uint64_t{1} << 44;
constexpr uint64_t kGapBytes = uint64_t{1} << 30;
constexpr uint64_t kPositionChecks = 4000;  // Looks at the ring before the receiver sleeps.

std::string name_of(CUresult status) {
  const char* name = nullptr;
  cuGetErrorName(status, &name);
  return name == nullptr ? std::to_string(status) : name;
}

// Reserves an address range, at `wanted` if it is free there, otherwise above.
CUresult reserve(CUdeviceptr wanted, uint64_t bytes, uint64_t& address) {
  CUdeviceptr found = 0;
  CUresult status = cuMemAddressReserve(&found, bytes, kGranularity, wanted, 0);
  if (status != CUDA_SUCCESS) status = cuMemAddressReserve(&found, bytes, kGranularity, 0, 0);
  address = found;
  return status;
}

}  // namespace

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
  const CUmemAllocationProp properties = properties_of_memory(executor->device_);
  if (failed("cuMemGetAllocationGranularity",
             cuMemGetAllocationGranularity(&executor->granularity_, &properties,
                                           CU_MEM_ALLOC_GRANULARITY_MINIMUM))) {
    return nullptr;
  }
  if (options.memory_bytes_max == 0) {
    size_t total = 0;
    if (failed("cuDeviceTotalMem", cuDeviceTotalMem(&total, executor->device_))) return nullptr;
    executor->options_.memory_bytes_max = total / 2;
  }
  const CUdeviceptr behind = kFarFromTheHosts + options.arena_bytes + kGapBytes;
  if (failed("cuMemAddressReserve",
             reserve(kFarFromTheHosts, options.arena_bytes, executor->arena_)) ||
      failed("cuMemAddressReserve", reserve(behind, options.regions_bytes, executor->regions_))) {
    return nullptr;
  }
  const uint64_t regions = executor->regions_;
  executor->region_map_.open(regions, options.regions_bytes, options.regions_bytes,
                             ArenaMap::Order::kFirst);
  return executor;
}

Executor::~Executor() {
  if (page_ != nullptr) detach();
}

bool Executor::attach(int descriptor) {
  MC_CHECK(page_ == nullptr);  // The last candidate is detached.
  cuCtxSetCurrent(context_);
  void* memory = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return false;
  MC_CHECK(blocks_.empty() && region_blocks_.empty() && mapped_bytes_ == 0);
  MC_CHECK(modules_.empty() && functions_.empty() && streams_.empty() && events_.empty());
  MC_CHECK(!is_timed_ && !is_taken_ && num_captures_ == 0);
  page_ = static_cast<Page*>(memory);
  ring_ = static_cast<const char*>(memory) + kPageBytes;
  reply_area_ = static_cast<char*>(memory) + kPageBytes + kRingBytes;
  position_ = 0;
  use_ = {};
  page_->arena = arena_;
  page_->arena_bytes = options_.arena_bytes;
  // The client counts in units of kGranularity, the executor in the device's granularity.
  const bool counts_alike = granularity_ == kGranularity;
  page_->memory_bytes_max = counts_alike ? options_.memory_bytes_max : options_.arena_bytes;
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

// True if the candidate may run this kernel or library function, which is not its own.
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
  // An operator ran in this process, where a hostile argument may have corrupted memory.
  if (use_.operators > 0) also(CUDA_ERROR_UNKNOWN);
  if (status == CUDA_SUCCESS && !libraries_.reset()) status = CUDA_ERROR_UNKNOWN;
  for (const auto& [handle, exec] : graph_execs_) also(cuGraphExecDestroy(exec.exec));
  for (const auto& [handle, graph] : graphs_) also(cuGraphDestroy(graph.graph));
  for (const auto& [handle, event] : events_) also(cuEventDestroy(event));
  for (const auto& [handle, stream] : streams_) also(cuStreamDestroy(stream));
  for (const auto& [handle, module] : modules_) {
    if (module.is_own) also(cuModuleUnload(module.module));
  }
  for (const ImageKey& key : changed_modules_) {
    MC_CHECK(kept_modules_.contains(key));
    also(cuModuleUnload(kept_modules_[key]));
    kept_modules_.erase(key);
  }
  changed_modules_.clear();
  for (const CUevent event : joins_) also(cuEventDestroy(event));
  if (batch_ != nullptr) batch_->release();
  is_timed_ = is_taken_ = false;
  num_captures_ = 0;
  captured_.clear();
  joins_.clear();
  streams_used_.clear();
  slots_ = 0;
  for (const auto& [address, block] : blocks_) unmap_block(address, block);
  for (const auto& [address, block] : region_blocks_) {
    unmap_block(address, block);
    region_map_.release(address);
  }
  MC_CHECK(region_map_.bytes_used() == 0);
  graph_execs_.clear();
  graphs_.clear();
  events_.clear();
  streams_.clear();
  functions_.clear();
  modules_.clear();
  texts_.clear();
  text_bytes_ = 0;
  variables_.clear();
  blocks_.clear();
  region_blocks_.clear();
  files_.clear();
  foreign_allowed_.clear();
  mapped_bytes_ = mapped_bytes_peak_ = 0;
  imports_ = 0;
  launches_replied_ = replies_behind_launches_ = 0;
  record_ = -1;
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
  MC_CHECK(page_ != nullptr);
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
      if (page_->written.load(std::memory_order_seq_cst) == position_)
        futex_wait(page_->wake, 0, kWaitMax);
      page_->wake.store(1, std::memory_order_seq_cst);
      continue;
    }
    looks = 0;
    MC_CHECK(position_ % kCommandAlignment == 0);
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
      note(Note::kCommand, &header.op, sizeof header.op, command.data(), body_bytes);
      begin_command(header.location);
      execute(header.op, {command.data(), body_bytes});
    }
    position_ += header.bytes;
    page_->read.store(position_, std::memory_order_release);
  }
}

void Executor::delay_reply() {
  const bool is_behind_launches = use_.launches != launches_replied_;
  launches_replied_ = use_.launches;
  // A timed call is measured by the device, and a standalone program (src/check) has no inputs.
  if (!is_behind_launches || is_timed_ || imports_ == 0) return;
  if (++replies_behind_launches_ <= kPromptReplies) return;
  const int us_max = replies_behind_launches_ <= kShortDelays ? kShortDelayUs : kLongDelayUs;
  const std::chrono::microseconds delay(std::uniform_int_distribution<int>(0, us_max)(delays_));
  options_.sleep == nullptr ? std::this_thread::sleep_for(delay) : options_.sleep(delay);
}

// Sends the reply, with the data of set_reply().
void Executor::reply(CUresult status) {
  delay_reply();
  note(Note::kReply, &status, sizeof status, reply_area_, std::min(reply_bytes_, kNotedBytesMax));
  page_->reply_status = static_cast<uint32_t>(status);
  page_->reply_bytes = static_cast<uint32_t>(reply_bytes_);
  page_->replies.fetch_add(1, std::memory_order_release);
  futex_wake(page_->replies);
}

void Executor::fail(CUresult status) {
  if (status == CUDA_SUCCESS) return;
  note(Note::kError, &status, sizeof status);
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
    // No work of the call may run before its timing begins.
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

}  // namespace mc::device
