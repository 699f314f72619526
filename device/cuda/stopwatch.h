// SPDX-License-Identifier: Apache-2.0
//
// Stopwatch: measures by device events how long calls take on a device, each with a cold cache.
//
// begin() queues the wait for the call's gate, reads that empty the L2 cache, and an event; the
// call's own work follows in the same stream; end() queues an event and opens the gate.  So the
// device has the whole call in its queue before the call begins, and fetches it while the cache is
// flushed: the host's part of a call does not count.  A call that waits for the device cannot be
// queued whole: its gate opens before its end (by open_gate, or by itself after kPatience), and
// host time from then on counts.  Without a gate, all host time counts.
//
// Events are in memory that a kernel may find and forge.  So the host's clock checks some calls
// (check()): it measures from the opening of the gate until a secret word arrives that no kernel of
// the call can know.
//
// A stopwatch belongs to the current context; one thread uses it at a time.
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

  // Returns null if the driver fails, with its error in `why`.
  static std::unique_ptr<Stopwatch> create(CUdevice device, std::string& why);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Forgets all calls.  REQUIRES: the device is idle.
  void reset() {
    was_whole_.clear();
    host_us_.clear();
  }
  // Begins the next call.  REQUIRES: no call is under way.
  CUresult begin(CUstream stream, bool is_gated);
  // The event that begin() recorded; other streams may wait for it.
  CUevent start_event() const;
  // Opens the gate of the current call before the call's end.
  void open_gate();
  CUresult end(CUstream stream);
  // Like end(), but waits until the call is over and measures it by the host's clock; each call
  // needs a fresh `secret`.  REQUIRES: the device was idle when the call began.
  CUresult check(CUstream stream, uint64_t secret);

  struct Call {
    double us = 0;
    // For a checked call, its time by the host's clock, from the opening of its gate (or from its
    // beginning, without a gate), including the time of an empty call; otherwise 0.
    double host_us = 0;
    bool was_queued_whole = false;  // Queued completely before it began.
  };
  // The times of all calls since reset().  REQUIRES: the device has finished them.
  CUresult times(std::vector<Call>& calls) const;

 private:
  using Clock = std::chrono::steady_clock;

  Stopwatch() = default;
  void open_at_last();  // The body of thread_.

  // Constant after construction:
  CUdeviceptr flush_ = 0;  // Memory that is read to flush the cache.
  uint64_t flush_bytes_ = 0;
  CUdeviceptr sink_ = 0;
  uint32_t* gate_ = nullptr;  // On the host; the device reads it.
  CUdeviceptr gate_there_ = 0;
  uint64_t* word_ = nullptr;  // On the host; the device writes it.
  CUdeviceptr word_there_ = 0;

  std::vector<CUevent> events_;  // Two for each call.
  std::vector<bool> was_whole_;  // One for each call: it was queued whole before it began.
  std::vector<double> host_us_;  // One for each call.
  uint32_t number_ = 0;          // The number of the last gate.
  bool is_closed_ = false;

  // Either thread may open the gate: the caller's by open_gate(), thread_ at the deadline.  The
  // mutex lets only the first do it.  `waiting_` is the state: begin() sets it, the opening clears
  // it.  The device reads gate_ without the mutex, so its stores are atomic.
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
