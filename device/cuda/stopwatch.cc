// SPDX-License-Identifier: Apache-2.0
#include "cuda/stopwatch.h"

#include <algorithm>

#include "check.h"
#include "cuda/kernels.h"

namespace mc::device {
namespace {

constexpr uint64_t kFlushFactor = 2;  // A multiple of the cache's size.
constexpr uint64_t kFlushBytesMin = 32u << 20;
constexpr uint64_t kSharedBytes = 128;  // The gate; the word begins in the middle.
// The check waits no longer than this for a call; times() then waits for it.
constexpr std::chrono::seconds kCheckLimit{2};

}  // namespace

std::unique_ptr<Stopwatch> Stopwatch::create(CUdevice device, std::string& why) {
  std::unique_ptr<Stopwatch> watch(new Stopwatch);
  int cache_bytes = 0;
  void* gate = nullptr;
  CUresult status = cuDeviceGetAttribute(&cache_bytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
  watch->flush_bytes_ = std::max(kFlushBytesMin, kFlushFactor * static_cast<uint64_t>(cache_bytes));
  const auto also = [&](CUresult next) {
    if (status == CUDA_SUCCESS) status = next;
  };
  also(cuMemAlloc(&watch->flush_, watch->flush_bytes_ + sizeof(uint32_t)));
  watch->sink_ = watch->flush_ + watch->flush_bytes_;
  also(cuMemsetD8(watch->flush_, 0, watch->flush_bytes_));
  also(cuMemHostAlloc(&gate, kSharedBytes, CU_MEMHOSTALLOC_DEVICEMAP));
  watch->gate_ = static_cast<uint32_t*>(gate);
  watch->word_ = static_cast<uint64_t*>(gate) + kSharedBytes / 2 / sizeof(uint64_t);
  if (status == CUDA_SUCCESS) status = cuMemHostGetDevicePointer(&watch->gate_there_, gate, 0);
  if (status != CUDA_SUCCESS) {
    const char* name = nullptr;
    cuGetErrorName(status, &name);
    why = std::string("the stopwatch: ") + (name == nullptr ? "?" : name);
    return nullptr;
  }
  watch->word_there_ = watch->gate_there_ + kSharedBytes / 2;
  std::atomic_ref<uint32_t>(*watch->gate_).store(0);
  watch->thread_ = std::thread([w = watch.get()] { w->open_at_last(); });
  return watch;
}

Stopwatch::~Stopwatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (const CUevent event : events_) cuEventDestroy(event);
  if (flush_ != 0) cuMemFree(flush_);
  if (gate_ != nullptr) cuMemFreeHost(gate_);
}

// Otherwise a call that waits for the device in an unforeseen way would wait for ever.
void Stopwatch::open_at_last() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    if (waiting_ == 0) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, deadline_) == std::cv_status::timeout && waiting_ != 0 &&
               Clock::now() >= deadline_) {
      was_patient_ = false;
      opened_at_ = Clock::now();
      std::atomic_ref<uint32_t>(*gate_).store(waiting_);
      waiting_ = 0;
    }
  }
}

CUresult Stopwatch::begin(CUstream stream, bool is_gated) {
  while (events_.size() < 2 * (was_whole_.size() + 1)) {
    CUevent event = nullptr;
    if (const CUresult status = cuEventCreate(&event, CU_EVENT_DEFAULT)) return status;
    events_.push_back(event);
  }
  was_whole_.push_back(false);
  host_us_.push_back(0);
  CUresult status = CUDA_SUCCESS;
  if (is_gated) {
    ++number_;
    // A kernel may have written to it.
    std::atomic_ref<uint32_t>(*gate_).store(number_ - 1);
    {
      const std::lock_guard lock(mutex_);
      waiting_ = number_;
      was_patient_ = true;
      deadline_ = Clock::now() + kPatience;
    }
    changed_.notify_one();
    is_closed_ = true;
    status = cuStreamWaitValue32(stream, gate_there_, number_, CU_STREAM_WAIT_VALUE_GEQ);
  } else {
    const std::lock_guard lock(mutex_);
    opened_at_ = Clock::now();
  }
  // This is behind the gate: while the cache is flushed, the device fetches the queued work.
  if (status == CUDA_SUCCESS) status = read_through(flush_, flush_bytes_, sink_, stream);
  return status == CUDA_SUCCESS ? cuEventRecord(start_event(), stream) : status;
}

CUevent Stopwatch::start_event() const {
  MC_CHECK(!was_whole_.empty());
  return events_[2 * (was_whole_.size() - 1)];
}

void Stopwatch::open_gate() {
  if (!is_closed_) return;
  is_closed_ = false;
  const std::lock_guard lock(mutex_);
  if (waiting_ == 0) return;  // The other thread was first.
  MC_CHECK(waiting_ == number_);
  waiting_ = 0;
  opened_at_ = Clock::now();
  std::atomic_ref<uint32_t>(*gate_).store(number_);
}

CUresult Stopwatch::end(CUstream stream) {
  MC_CHECK(!was_whole_.empty());
  const CUresult status = cuEventRecord(events_[2 * was_whole_.size() - 1], stream);
  const bool was_closed = is_closed_;
  open_gate();
  const std::lock_guard lock(mutex_);
  was_whole_.back() = was_closed && was_patient_;
  return status;
}

CUresult Stopwatch::check(CUstream stream, uint64_t secret) {
  MC_CHECK(!was_whole_.empty());
  const std::atomic_ref<uint64_t> word(*word_);
  word.store(~secret);
  if (const CUresult status = cuEventRecord(events_[2 * was_whole_.size() - 1], stream)) {
    return status;
  }
  if (const CUresult status = store_word(word_there_, secret, stream)) return status;
  const bool was_closed = is_closed_;
  open_gate();
  Clock::time_point start;
  {
    const std::lock_guard lock(mutex_);
    was_whole_.back() = was_closed && was_patient_;
    start = opened_at_;
  }
  const auto wait_began = Clock::now();
  while (word.load() != secret) {
    if (Clock::now() - wait_began > kCheckLimit) return CUDA_SUCCESS;
  }
  host_us_.back() = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  return CUDA_SUCCESS;
}

CUresult Stopwatch::times(std::vector<Call>& calls) const {
  MC_CHECK(host_us_.size() == was_whole_.size() && events_.size() >= 2 * was_whole_.size());
  calls.clear();
  for (size_t i = 0; i < was_whole_.size(); ++i) {
    float ms = 0;
    if (const CUresult status = cuEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1])) {
      return status;
    }
    calls.push_back({static_cast<double>(ms) * 1e3, host_us_[i], was_whole_[i]});
  }
  return CUDA_SUCCESS;
}

}  // namespace mc::device
