// SPDX-License-Identifier: Apache-2.0
//
// Stopwatch: how long calls take on a device, each with a cold cache, by the device's events.
//
// begin() queues the wait for the call's gate, reads that empty the L2 cache, and an event; the
// call's own work follows in the same stream; end() queues an event and opens the gate.  So the
// device had all of the call before it began, and fetched it while the cache was emptied: the
// host's part of a call does not count.  A call that waits for the device cannot be queued
// whole: its gate is opened before its end (open_gate, or by itself after kPatience), and what the
// host does from then on counts.  Without a gate, all that the host does counts.
//
// Events lie in memory that a kernel may find and forge.  So some calls are checked by the host's
// clock too, from the opening of the gate until a word arrives that no kernel of the call can know
// (check()).
//
// It is of the current context, and used by one thread at a time.
#ifndef MC_DEVICE_CUDA_STOPWATCH_H_
#define MC_DEVICE_CUDA_STOPWATCH_H_

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mc::device {

class Stopwatch {
 public:
  static constexpr std::chrono::milliseconds kPatience{20};

  // Null where the driver refuses, and then `why` has its error.
  static std::unique_ptr<Stopwatch> create(CUdevice device, std::string& why);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Forgets all calls.  REQUIRES: the device has nothing to do.
  void reset() {
    was_whole_.clear();
    host_us_.clear();
  }
  // The next call begins.  REQUIRES: no call is under way.
  CUresult begin(CUstream stream, bool is_gated);
  // Recorded by begin(): other streams may wait for it.
  CUevent start_event() const { return events_[2 * (was_whole_.size() - 1)]; }
  // The gate of the call that is under way is opened before its end.
  void open_gate();
  CUresult end(CUstream stream);
  // In place of end(), and waits until the call is over; `secret` is drawn for it alone.
  // REQUIRES: the device had nothing to do when it began.
  CUresult check(CUstream stream, uint64_t secret);

  struct Call {
    double us = 0;
    // The host's clock, of a checked call, from the opening of its gate on (or, without one, from
    // its beginning) with what a call without work takes; else 0.
    double host_us = 0;
    bool was_queued_whole = false;  // Before it began.
  };
  // One for each call since reset().  REQUIRES: the device is done with them.
  CUresult times(std::vector<Call>& calls) const;

 private:
  using Clock = std::chrono::steady_clock;

  Stopwatch() = default;
  void open_at_last();  // The body of thread_.

  // Constant after construction:
  CUdeviceptr flush_ = 0;  // Memory to be read.
  uint64_t flush_bytes_ = 0;
  CUdeviceptr sink_ = 0;
  uint32_t* gate_ = nullptr;  // On the host; the device reads it.
  CUdeviceptr gate_there_ = 0;
  uint64_t* word_ = nullptr;  // On the host; the device writes it.
  CUdeviceptr word_there_ = 0;

  std::vector<CUevent> events_;  // Two for each call.
  std::vector<bool> was_whole_;  // One for each call: it was queued whole before it began.
  std::vector<double> host_us_;  // One for each call.
  uint32_t number_ = 0;          // The last gate's.
  bool is_closed_ = false;

  // The gate is opened by either thread; a mutex says which of them was first.
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t waiting_ = 0;  // The number of the gate that is closed; 0 for none.
  bool was_patient_ = true;
  bool is_over_ = false;
  Clock::time_point deadline_;
  Clock::time_point opened_at_;  // Since then the device could work on the last call.
  std::thread thread_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_STOPWATCH_H_
