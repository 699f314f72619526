// SPDX-License-Identifier: Apache-2.0
//
// TimedBatch: calls of a candidate in sequence, each timed (stopwatch.h) and on its own inputs.
//
// Kernels of the candidate share this process's memory: a kernel that knew a later call's inputs
// could compute ahead, and one that found an earlier call's outputs could fill them in late.  So
// inputs are stored masked, each call's with its own secret, and unmasked to the candidate's
// address only when the previous call is over.  Outputs are copied away, masked, after each call.
//
// A batch belongs to the current context; one thread uses it at a time.
#ifndef MC_DEVICE_CUDA_TIMED_BATCH_H_
#define MC_DEVICE_CUDA_TIMED_BATCH_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "cuda/kernels.h"
#include "cuda/stopwatch.h"

namespace mc::device {

// A call's inputs and outputs, in bytes; each is a multiple of kAlignment.
struct CallBytes {
  uint64_t inputs = 0;
  uint64_t outputs = 0;
};

class TimedBatch {
 public:
  static constexpr uint64_t kAlignment = 512;
  static constexpr uint32_t kCallsMax = 1024;

  static std::unique_ptr<TimedBatch> create(CUdevice device, std::string& why);
  ~TimedBatch();
  TimedBatch(const TimedBatch&) = delete;
  TimedBatch& operator=(const TimedBatch&) = delete;

  // Allocates memory for batches of at most `calls` calls.
  CUresult prepare(uint32_t calls, const CallBytes& bytes);
  // Frees that memory.  REQUIRES: the device is idle.
  void release();
  // Begins a batch, whose inputs are at `inputs`, call after call.  They appear at `slots`, which
  // has room for two calls and is used alternately.  REQUIRES: the candidate runs nothing until
  // this returns.
  CUresult start(uint32_t calls, CUdeviceptr inputs, CUdeviceptr slots, bool is_gated);

  bool is_in_call() const { return is_in_call_; }
  uint32_t calls_begun() const { return begun_; }
  CUevent start_event() const { return watch_->start_event(); }
  // True if `call` is the next call.
  bool may_begin(uint32_t call) const {
    return is_running_ && !is_in_call_ && call == begun_ && call < calls_;
  }
  // Both functions queue their work in the legacy default stream.
  CUresult begin_call();
  CUresult end_call(const std::vector<OutputPart>& parts);
  void open_gate() { watch_->open_gate(); }

  // Ends the batch and returns its times; those by the host's clock exclude the time of an empty
  // call.  REQUIRES: the device is idle.
  CUresult finish(std::vector<Stopwatch::Call>& times);
  // The sizes of a finished call's outputs, and a copy of their bytes, in which each part begins at
  // a multiple of kAlignment.
  const std::vector<OutputPart>* parts_of(uint32_t call) const;
  CUresult copy_outputs(uint32_t call, CUdeviceptr target);

  static uint64_t rounded(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  TimedBatch() = default;
  CUresult time_empty_calls();
  CUresult mask_parts(uint32_t call, bool is_back, CUdeviceptr other);

  std::unique_ptr<Stopwatch> watch_;
  CallBytes bytes_;
  CUdeviceptr waiting_ = 0;  // Inputs, masked.
  CUdeviceptr kept_ = 0;     // Outputs, masked.
  uint32_t room_ = 0;        // Calls.

  // State of the batch:
  CUdeviceptr slots_ = 0;
  uint32_t calls_ = 0;
  uint32_t begun_ = 0;
  bool is_gated_ = false;
  bool is_running_ = false;
  bool is_in_call_ = false;
  bool is_checked_ = false;  // The host's clock checks the current call.
  double empty_us_ = 0;      // The time of an empty call by the host's clock.
  std::vector<Mask> masks_;  // Three for each call: for inputs, outputs and the check.
  std::vector<std::vector<OutputPart>> parts_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_TIMED_BATCH_H_
