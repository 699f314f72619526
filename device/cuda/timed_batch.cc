// SPDX-License-Identifier: Apache-2.0
#include "cuda/timed_batch.h"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "check.h"

namespace mc::device {
namespace {

constexpr int kEmptyCalls = 5;
constexpr uint64_t kCheckedOneIn = 4;
constexpr double kLeastHostUs = 0.01;  // For a checked call; 0 means not checked.

uint64_t random_word() {
  uint64_t word = 0;
  while (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
  }
  return word;
}

}  // namespace

std::unique_ptr<TimedBatch> TimedBatch::create(CUdevice device, std::string& why) {
  std::unique_ptr<TimedBatch> batch(new TimedBatch);
  batch->watch_ = Stopwatch::create(device, why);
  return batch->watch_ == nullptr ? nullptr : std::move(batch);
}

TimedBatch::~TimedBatch() { release(); }

void TimedBatch::release() {
  is_running_ = is_in_call_ = false;
  parts_.clear();
  if (waiting_ != 0) cuMemFree(waiting_);
  if (kept_ != 0) cuMemFree(kept_);
  waiting_ = kept_ = 0;
  room_ = 0;
}

CUresult TimedBatch::prepare(uint32_t calls, const CallBytes& bytes) {
  if (calls == 0 || calls > kCallsMax || bytes.inputs % kAlignment != 0 ||
      bytes.outputs % kAlignment != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  is_running_ = is_in_call_ = false;
  parts_.clear();
  if (calls <= room_ && bytes.inputs == bytes_.inputs && bytes.outputs == bytes_.outputs) {
    return CUDA_SUCCESS;
  }
  release();
  CUresult status = cuMemAlloc(&waiting_, std::max(kAlignment, calls * bytes.inputs));
  if (status == CUDA_SUCCESS) {
    status = cuMemAlloc(&kept_, std::max(kAlignment, calls * bytes.outputs));
  }
  if (status != CUDA_SUCCESS) return status;
  bytes_ = bytes;
  room_ = calls;
  return CUDA_SUCCESS;
}

CUresult TimedBatch::start(uint32_t calls, CUdeviceptr inputs, CUdeviceptr slots, bool is_gated) {
  if (calls == 0 || calls > room_) return CUDA_ERROR_INVALID_VALUE;
  masks_.resize(3 * size_t{calls});
  const size_t wanted = masks_.size() * sizeof(Mask);
  if (getrandom(masks_.data(), wanted, 0) != static_cast<ssize_t>(wanted)) {
    return CUDA_ERROR_UNKNOWN;
  }
  watch_->reset();
  parts_.assign(calls, {});
  calls_ = calls;
  slots_ = slots;
  begun_ = 0;
  is_gated_ = is_gated;
  is_in_call_ = false;
  for (uint32_t call = 0; call < calls; ++call) {
    const uint64_t offset = call * bytes_.inputs;
    if (const CUresult status = copy_masked(waiting_ + offset, inputs + offset, bytes_.inputs,
                                            masks_[3 * call], 0, CU_STREAM_LEGACY)) {
      return status;
    }
  }
  CUresult status = cuCtxSynchronize();
  if (status == CUDA_SUCCESS) status = time_empty_calls();
  is_running_ = status == CUDA_SUCCESS;
  return status;
}

CUresult TimedBatch::time_empty_calls() {
  std::vector<Stopwatch::Call> calls;
  for (int i = 0; i < kEmptyCalls; ++i) {
    CUresult status = watch_->begin(CU_STREAM_LEGACY, /*is_gated=*/true);
    if (status == CUDA_SUCCESS) status = watch_->check(CU_STREAM_LEGACY, random_word());
    if (status != CUDA_SUCCESS) return status;
  }
  if (const CUresult status = watch_->times(calls)) return status;
  MC_CHECK(calls.size() == kEmptyCalls);
  std::vector<double> found;
  for (const Stopwatch::Call& call : calls) found.push_back(call.host_us);
  std::ranges::sort(found);
  empty_us_ = found[found.size() / 2];
  watch_->reset();
  return CUDA_SUCCESS;
}

CUresult TimedBatch::begin_call() {
  MC_CHECK(may_begin(begun_) && masks_.size() == 3 * size_t{calls_});
  const uint32_t call = begun_++;
  is_in_call_ = true;
  const CUdeviceptr slot = slots_ + (call % 2) * bytes_.inputs;
  CUresult status = copy_masked(slot, waiting_ + call * bytes_.inputs, bytes_.inputs,
                                masks_[3 * call], 0, CU_STREAM_LEGACY);
  // The last call of a batch is checked, and other calls at random.  The device must do nothing
  // else during a check, because the host's clock would count that, too.
  is_checked_ = call + 1 == calls_ || masks_[3 * call + 2].words[0] % kCheckedOneIn == 0;
  if (status == CUDA_SUCCESS && is_checked_) status = cuStreamSynchronize(CU_STREAM_LEGACY);
  if (status == CUDA_SUCCESS) status = watch_->begin(CU_STREAM_LEGACY, is_gated_);
  // After a failed begin the call cannot end, and an incomplete batch has no times.
  if (status != CUDA_SUCCESS) is_running_ = is_in_call_ = false;
  return status;
}

CUresult TimedBatch::end_call(const std::vector<OutputPart>& parts) {
  MC_CHECK(is_in_call_ && begun_ > 0);
  const uint32_t call = begun_ - 1;
  MC_CHECK(call < calls_ && parts_.size() == calls_);
  is_in_call_ = false;
  uint64_t bytes = 0;
  for (const OutputPart& part : parts) bytes += rounded(part.bytes);
  CUresult status = is_checked_ ? watch_->check(CU_STREAM_LEGACY, masks_[3 * call + 2].words[1])
                                : watch_->end(CU_STREAM_LEGACY);
  if (status == CUDA_SUCCESS && bytes > bytes_.outputs) status = CUDA_ERROR_INVALID_VALUE;
  if (status != CUDA_SUCCESS) return status;
  parts_[call] = parts;
  return mask_parts(call, /*is_back=*/false, 0);
}

CUresult TimedBatch::mask_parts(uint32_t call, bool is_back, CUdeviceptr other) {
  MC_CHECK(call < parts_.size() && call < room_);
  const CUdeviceptr kept = kept_ + call * bytes_.outputs;
  uint64_t offset = 0;
  for (const OutputPart& part : parts_[call]) {
    const CUdeviceptr target = is_back ? other + offset : kept + offset;
    const CUdeviceptr source = is_back ? kept + offset : part.source;
    const CUresult status =
        copy_masked(target, source, part.bytes, masks_[3 * call + 1], offset / 8, CU_STREAM_LEGACY);
    if (status != CUDA_SUCCESS) return status;
    offset += rounded(part.bytes);
    MC_CHECK(offset <= bytes_.outputs);
  }
  return CUDA_SUCCESS;
}

CUresult TimedBatch::finish(std::vector<Stopwatch::Call>& times) {
  const bool is_whole = is_running_ && !is_in_call_ && begun_ == calls_;
  is_running_ = is_in_call_ = false;
  watch_->open_gate();
  if (!is_whole) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = watch_->times(times);
  MC_CHECK(status != CUDA_SUCCESS || times.size() == calls_);
  for (Stopwatch::Call& call : times) {
    if (call.host_us > 0) call.host_us = std::max(kLeastHostUs, call.host_us - empty_us_);
  }
  return status;
}

const std::vector<OutputPart>* TimedBatch::parts_of(uint32_t call) const {
  return !is_running_ && call < parts_.size() ? &parts_[call] : nullptr;
}

CUresult TimedBatch::copy_outputs(uint32_t call, CUdeviceptr target) {
  MC_CHECK(parts_of(call) != nullptr);
  return mask_parts(call, /*is_back=*/true, target);
}

}  // namespace mc::device
