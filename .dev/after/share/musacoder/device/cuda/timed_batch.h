// SPDX-License-Identifier: Apache-2.0
//
// TimedBatch: calls of a candidate, one behind the other, each on inputs of its own and timed
// (stopwatch.h).
//
// Kernels of the candidate share this process's memory: one that knew the inputs of later calls
// could compute ahead, one that found earlier outputs could fill them in late.  So inputs wait
// masked, each call's by a secret of its own, and are unmasked to where the candidate sees them
// when all of the call before is over; and outputs are copied away, masked, behind each call's end.
//
// It is of the current context, and used by one thread at a time.
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

  // Room for batches of at most so many calls.
  CUresult prepare(uint32_t calls, const CallBytes& bytes);
  // Gives the room back.  REQUIRES: the device has nothing to do.
  void release();
  // A batch of calls begins, whose inputs lie at `inputs` one call's after another's.  They appear
  // at `slots`, where there is room for two calls: by turns in the first and in the second.
  // REQUIRES: nothing of the candidate's runs until this returns.
  CUresult start(uint32_t calls, CUdeviceptr inputs, CUdeviceptr slots, bool is_gated);

  bool is_in_call() const { return is_in_call_; }
  uint32_t calls_begun() const { return begun_; }
  CUevent start_event() const { return watch_->start_event(); }
  // False for a call that is not the next one.
  bool may_begin(uint32_t call) const {
    return is_running_ && !is_in_call_ && call == begun_ && call < calls_;
  }
  // Both are queued in the legacy default stream.
  CUresult begin_call();
  CUresult end_call(const std::vector<OutputPart>& parts);
  void open_gate() { watch_->open_gate(); }

  // Ends the batch; its times, of which those by the host's clock are without what an empty call
  // takes.  REQUIRES: the device is done.
  CUresult finish(std::vector<Stopwatch::Call>& times);
  // The bytes of a finished call's outputs, each part from a multiple of kAlignment on, and a copy
  // of them.
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

  // The batch's:
  CUdeviceptr slots_ = 0;
  uint32_t calls_ = 0;
  uint32_t begun_ = 0;
  bool is_gated_ = false;
  bool is_running_ = false;
  bool is_in_call_ = false;
  bool is_checked_ = false;  // The call that is under way, by the host's clock.
  double empty_us_ = 0;      // An empty call by the host's clock.
  std::vector<Mask> masks_;  // Three for each call: its inputs', its outputs', its check's.
  std::vector<std::vector<OutputPart>> parts_;
};

}  // namespace mc::device

#endif  // MC_DEVICE_CUDA_TIMED_BATCH_H_
