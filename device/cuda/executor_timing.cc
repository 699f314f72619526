// SPDX-License-Identifier: Apache-2.0
//
// Batches of timed calls (timed_batch.h).
#include <algorithm>
#include <cstring>

#include "check.h"
#include "cuda/executor.h"

namespace mc::device {
namespace {

// The maximum number of a call's queue entries behind a gate; the device's queue has room for about
// 800.
constexpr uint32_t kEntriesMax = 600;

}  // namespace

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
  if (slots_ != 0) {
    const bool is_new = region_blocks_.emplace(slots_, block).second;
    MC_CHECK(is_new);
  }
  call_bytes_ = bytes;
  return slots_;
}

bool Executor::start_batch(int descriptor, uint64_t bytes, uint32_t calls, BatchKind kind) {
  const uint64_t inputs = import_region(descriptor, bytes);
  if (inputs == 0) return false;
  bool is_started = false;
  {
    const std::lock_guard lock(mutex_);
    // Kernels that were queued before may still run and read the memory that is unmapped below.
    if (batch_ != nullptr && cuCtxSynchronize() == CUDA_SUCCESS &&
        calls * call_bytes_.inputs <= bytes) {
      has_failed_ = false;
      launches_own_.clear();
      was_long_.clear();
      items_.start(kind == BatchKind::kItemised);
      is_started = batch_->start(calls, inputs, slots_, kind == BatchKind::kGated) == CUDA_SUCCESS;
    }
  }
  release_region(inputs);
  return is_started;
}

// Opens the gate of a call with more work than the device's queue has room for.
void Executor::count_entries(uint32_t number) {
  MC_CHECK(batch_ != nullptr);
  entries_ += number;
  if (entries_ > kEntriesMax) batch_->open_gate();
}

CUresult Executor::begin_call(const Call& command, std::string_view) {
  if (batch_ == nullptr || !batch_->may_begin(command.call)) return CUDA_ERROR_NOT_PERMITTED;
  MC_CHECK(launches_own_.size() == command.call && was_long_.size() == command.call);
  if (command.call == 0) mapped_bytes_peak_ = mapped_bytes_;
  entries_ = 0;
  num_joins_ = 0;
  streams_used_.clear();
  launches_own_before_ = use_.launches_own;
  return batch_->begin_call();
}

// All work that the call queued in the stream counts in its time.
CUresult Executor::join(CUstream stream) {
  if (joins_.size() <= num_joins_) {
    CUevent event = nullptr;
    if (const CUresult status = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)) return status;
    joins_.push_back(event);
  }
  MC_CHECK(num_joins_ < joins_.size());
  const CUevent event = joins_[num_joins_++];
  const CUresult status = cuEventRecord(event, stream);
  return status == CUDA_SUCCESS ? cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0) : status;
}

CUresult Executor::end_call(const Call& command, std::string_view data) {
  if (batch_ == nullptr || !batch_->is_in_call() || command.call + 1 != batch_->calls_begun()) {
    return CUDA_ERROR_NOT_PERMITTED;
  }
  std::vector<OutputPart> parts(data.size() / sizeof(OutputPart));
  if (command.num_parts > parts.size()) return CUDA_ERROR_INVALID_VALUE;
  parts.resize(command.num_parts);
  std::memcpy(parts.data(), data.data(), parts.size() * sizeof(OutputPart));
  for (const OutputPart& part : parts) {
    const bool is_there = part.bytes == 0 || is_device_range(part.source, part.bytes);
    if (!is_there || part.bytes > options_.memory_bytes_max) return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult status = CUDA_SUCCESS;
  for (const CUstream stream : streams_used_) {
    if (status == CUDA_SUCCESS) status = join(stream);
  }
  MC_CHECK(use_.launches_own >= launches_own_before_);
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
  MC_CHECK(launches_own_.size() == times.size() && was_long_.size() == times.size());
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

uint64_t Executor::batch_memory_bytes() {
  const std::lock_guard lock(mutex_);
  return mapped_bytes_peak_;
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
  const uint64_t address = map_new_region(
      std::max(kGranularity, (end + kGranularity - 1) / kGranularity * kGranularity), block);
  if (address == 0) return kNoRoom;
  return exported(address, block, batch_->copy_outputs(call, address));
}

}  // namespace mc::device
