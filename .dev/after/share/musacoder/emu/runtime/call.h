// SPDX-License-Identifier: Apache-2.0
// The record of one call of a candidate's forward: how many bytes of device memory it brought to
// the host, and where the bytes of its outputs came from.
//
// On a GPU, host code that computes costs time; here it costs nothing that anybody measures.  So a
// call may bring only a small part of what it was given to the host: more is a finding
// (`host_compute`).  Copies are counted, and so is what kernels write to memory that both sides
// see.
//
// From the return of forward until the next call begins the candidate's work is over: a
// launch, or a write to what the call was given, is a finding (`late_work`).  So the inputs that
// the judge compares afterwards are those that stood beside the outputs.
#ifndef MC_EMU_RUNTIME_CALL_H_
#define MC_EMU_RUNTIME_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/arena.h"

namespace mc::emu {

// A keyed sum of 32-bit words: who does not know the key cannot make other bytes with its value.
struct Digest {
  uint64_t weight = 0, offset = 0;  // The key.
  uint64_t total = 0;

  // The bytes of one tensor; `size` is rounded up with zeros.
  void add(const void* bytes, size_t size);
};

class Call {
 public:
  bool is_active() const { return is_active_; }

  // `given_bytes` is the size of the inputs.
  void begin(uint64_t given_bytes, const Digest& key);
  void end() { is_active_ = false; }

  // Forward has returned: from here on its outputs are taken.
  void end_forward() { is_taken_ = true; }
  // True if forward has returned and no other call began.
  bool is_taken() const { return is_taken_; }
  void note_late_work(const char* what);

  void note_launch() { ++launches_; }
  void note_kernel_ns(uint64_t time) { kernel_ns_ += time; }
  void note_to_host(size_t bytes);
  // The runtime copied bytes on the device to another place than they had in their allocation.
  void note_moved(size_t bytes) { moved_ += bytes; }
  uint64_t moved() const { return moved_; }
  // A kernel read what nobody wrote: or what somebody did whom the checks did not see.
  void note_unknown_read(size_t bytes) { unknown_reads_ += bytes; }
  // A kernel read inputs or parameters.
  void note_given_read() { reads_given_ = true; }
  void note_output(const void* bytes, size_t size, const Origin* origins);

  // One line of JSON without its braces.
  int describe(char* text, size_t capacity) const;

 private:
  bool is_active_ = false;
  std::atomic<bool> is_taken_{false};
  uint64_t number_ = 0;
  uint64_t to_host_max_ = 0;
  std::atomic<uint64_t> launches_{0};
  std::atomic<uint64_t> kernel_ns_{0};  // Processor time of the process during launches.
  std::atomic<uint64_t> to_host_{0};
  std::atomic<uint64_t> moved_{0};
  std::atomic<uint64_t> unknown_reads_{0};
  std::atomic<bool> reads_given_{false};  // True from the start where no input was given.
  uint64_t output_bytes_[5] = {};         // The index is an Origin.
  Digest digest_;
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_CALL_H_
