// SPDX-License-Identifier: Apache-2.0
//
// DeviceProcess: the process that holds the device for a candidate process that has none
// (python/harness/device/process.py).  It never runs a candidate's host code, so one that came
// through a candidate without a fault serves the next one.
//
//   MC_TRY(Fd channel, device.open(), "device");       // Goes to the new candidate process.
//   MC_TRY(int64_t address, device.put(trees, region), "inputs");
//   ...                                                // The candidate runs on what is there.
//   MC_TRY(auto outputs, device.take(said), "outputs");
//   const bool is_clean = device.close();
#ifndef MC_EXECUTE_DEVICE_PROCESS_H_
#define MC_EXECUTE_DEVICE_PROCESS_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/fd.h"
#include "core/result.h"
#include "execute/children.h"
#include "task/verdict.h"
#include "worker/protocol.h"

namespace mc::execute {

// The policies' rule of what a candidate did in so many calls, where they do not allow everything;
// `bytes_before` went to the host before there were inputs.
std::optional<task::Outcome> forbidden_by(const worker::DeviceUsedAnswer& used,
                                          int64_t bytes_before, int64_t calls);

// The compressed data of a recording, and the name of the device that it was made on.
struct CandidateRecording {
  Fd data;
  std::string device;
};

class DeviceProcess {
 public:
  using Taken = worker::Response<worker::DeviceTakeQuestion>;

  DeviceProcess(Session session, double limit_s)
      : session_(std::move(session)), limit_s_(limit_s) {}

  // Begins with a candidate; the channel by which its process sends commands.  It may launch
  // PyTorch's kernels whose mangled names match one of the patterns.  A device in software has the
  // attributes in `described` (python/harness/worker/described.py) in the place of its own.  Where
  // the candidate is recorded, recording() has what it sent.
  Result<Fd> open(const std::vector<std::string>& foreign_kernels,
                  const std::map<std::string, int64_t>& described = {}, bool is_recorded = false);
  // The candidate may load kernels from these files: their paths as it sees them, and here.
  // `schedule_seed` orders the turns of a device in software.
  Status allow(const std::map<std::string, std::string>& files, uint64_t schedule_seed);
  // Maps a region of the judge's, whose tensors `trees` describe; its address.
  Result<int64_t> put(const std::vector<worker::Tree>& trees, const Fd& region);
  // The same with the inputs of a call of forward, which begins with it.
  Result<int64_t> begin_call(const worker::Tree& inputs, const Fd& region);
  Status release(int64_t address);
  // Copies the outputs and buffers that a candidate describes into a region for the judge.
  // ErrorReply where they are not in the candidate's memory.
  Answer take(const worker::Tree& outputs, const std::vector<worker::NamedTree>& buffers);
  // The candidate's use of the device so far.
  Result<worker::DeviceUsedAnswer> used();
  // The findings in all answers of used(), for decode_findings().
  const std::string& report() const { return report_; }

  // ---- Records and replays (docs/replay.md).
  // What the candidate sent so far.  kUnsupported, with the reason, where that cannot be replayed
  // elsewhere.
  Result<CandidateRecording> recording();
  // Replays a recording, as a process that has served no candidate and will serve none.
  // kInvalidInput for what is no recording or cannot be replayed here.
  Result<worker::DeviceReplayAnswer> replay(const Fd& data, const task::Correctness& correctness);

  // ---- Timing (device/cuda/timed_batch.h).
  // Room for batches of at most so many calls; the address at which their inputs appear.  From now
  // on the candidate has the device in timed calls alone.
  Result<int64_t> prepare_batches(int64_t calls, int64_t inputs_bytes, int64_t outputs_bytes);
  Status start_batch(int64_t calls, const Fd& inputs, int64_t nbytes, bool is_gated,
                     bool is_itemised);
  // Waits for the batch's work; refusal where the candidate did not make its calls, or failed.
  Answer finish_batch(double limit_s);
  // The outputs of one of its calls, in the form of which the candidate told.  ErrorReply where
  // they are others.
  Answer take_call(int64_t call, const worker::Tree& outputs);

  // True once an answer did not come: no further one will.  A candidate may have caused that.
  bool has_ended() const { return has_ended_; }

  // Ends with the candidate, whose process must be dead; whether another one may be served.
  bool close();

 private:
  Answer ask(const std::string& question, const Fd* region = nullptr,
             std::optional<double> limit_s = std::nullopt);
  template <typename Question>
  Result<worker::Response<Question>> call(const Question& question, const Fd* region = nullptr);

  Session session_;
  double limit_s_;
  bool has_ended_ = false;
  std::string report_;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_DEVICE_PROCESS_H_
