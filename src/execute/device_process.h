// SPDX-License-Identifier: Apache-2.0
//
// DeviceProcess: a process that holds the device for a candidate process without one
// (python/harness/device/process.py).  It never runs a candidate's host code, so a device process
// that served a candidate without a fault can serve the next one.
//
//   MC_TRY(Fd channel, device.open(), "device");       // Goes to the new candidate process.
//   MC_TRY(int64_t address, device.put(trees, region), "inputs");
//   ...                                                // The candidate runs on these inputs.
//   MC_TRY(auto outputs, device.take(response), "outputs");
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
#include "task/correctness.h"
#include "task/outcome.h"
#include "worker/protocol.h"

namespace mc::execute {

// Illegal where a candidate used the device in a way that policies forbid unless they allow
// everything.  `bytes_before` were copied to the host before there were inputs; `calls` is the
// number of calls of forward since.
std::optional<task::Outcome> forbidden_by(const worker::DeviceUsedResponse& used,
                                          int64_t bytes_before, int64_t calls);

// The compressed data of a recording, and the name of the device that it was recorded on.
struct CandidateRecording {
  Fd data;
  std::string device;
};

class DeviceProcess {
 public:
  using Taken = worker::Response<worker::DeviceTakeRequest>;

  DeviceProcess(Session session, double limit_s)
      : session_(std::move(session)), limit_s_(limit_s) {}

  // Begins to serve a candidate.  Returns the channel on which the candidate process sends
  // commands.  The candidate may launch PyTorch kernels whose mangled names match one of the
  // patterns.  A device in software reports the attributes in `described`
  // (python/harness/worker/described.py) in place of its own.  With `is_recorded`, recording()
  // returns the commands.
  Result<Fd> open(const std::vector<std::string>& foreign_kernels,
                  const std::map<std::string, int64_t>& described = {}, bool is_recorded = false);
  // Allows the candidate to load kernels from these files: their paths in the candidate's view,
  // mapped to those in this process's view.  `schedule_seed` orders the turns of warps on a device
  // in software.
  Status allow(const std::map<std::string, std::string>& files, uint64_t schedule_seed);
  // Maps a region of the judge, whose tensors `trees` describe.  Returns its address.
  Result<int64_t> put(const std::vector<worker::Tree>& trees, const Fd& region);
  // The same for the inputs of a call of forward, which begins with it.
  Result<int64_t> begin_call(const worker::Tree& inputs, const Fd& region);
  Status release(int64_t address);
  // Copies the outputs and buffers that a candidate describes into a region for the judge.
  // ErrorReply where they are not in the candidate's memory.
  CallResult take(const worker::Tree& outputs, const std::vector<worker::NamedTree>& buffers);
  // The candidate's use of the device so far.
  Result<worker::DeviceUsedResponse> used();
  // The findings in all responses of used(), for decode_findings().
  const std::string& report() const { return report_; }

  // ---- Records and replays (docs/replay.md). ----------------------------------------------------
  // The commands that the candidate sent so far.  kUnsupported, with the reason, where they cannot
  // be replayed on another device.
  Result<CandidateRecording> recording();
  // Replays a recording.  REQUIRES: the process serves no candidate, before or after.
  // kInvalidInput for data that is not a recording or cannot be replayed here.
  Result<worker::DeviceReplayResponse> replay(const Fd& data, const task::Correctness& correctness);

  // ---- Timing (device/cuda/timed_batch.h). ------------------------------------------------------
  // Reserves memory for batches of at most `calls` calls.  Returns the address at which their
  // inputs appear.  From now on the candidate has the device only during timed calls.
  Result<int64_t> prepare_batches(int64_t calls, int64_t inputs_bytes, int64_t outputs_bytes);
  Status start_batch(int64_t calls, const Fd& inputs, int64_t nbytes, bool is_gated,
                     bool is_itemised);
  // Waits for the batch to finish.  ErrorReply where the candidate did not make its calls, or
  // failed.
  CallResult finish_batch(double limit_s);
  // The outputs of one call of the batch, in the form that the candidate described.  ErrorReply
  // where they have another form.
  CallResult take_call(int64_t index, const worker::Tree& outputs);

  // True once a response did not come; none will come any more.  A candidate may have caused that.
  bool has_ended() const { return has_ended_; }

  // Stops serving the candidate, whose process must have ended.  True if the process may serve
  // another candidate.
  bool close();
  // The error where a check in the process's own code failed (MC_CHECK in device/check.h) instead
  // of a response: a defect of this project, for which no candidate is to blame.
  const std::optional<Error>& failed_check() const { return failed_check_; }

 private:
  CallResult call(const std::string& request, const Fd* region = nullptr,
                  std::optional<double> limit_s = std::nullopt);
  template <typename Request>
  Result<worker::Response<Request>> call(const Request& request, const Fd* region = nullptr);

  Session session_;
  double limit_s_;
  bool has_ended_ = false;
  std::optional<Error> failed_check_;
  std::string report_;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_DEVICE_PROCESS_H_
