// SPDX-License-Identifier: Apache-2.0
// The findings report: JSON lines, each sent as one message of a socket as soon as it is known, so
// that nothing that happens later can take it back.
//
// The other side's first message is a key, which only this object then holds: each line begins with
// it, and a line without it was written by somebody else.  A process that can no longer report ends
// (kMcEmuReportLost).  Findings are bounded by kMcEmuFindingsMax for each call; a finding of the
// same kind at the same address is written once.
#ifndef MC_EMU_RUNTIME_REPORT_H_
#define MC_EMU_RUNTIME_REPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/call.h"

namespace mc::emu {

struct Finding {
  const char* kind = "";
  const char* kernel = "";
  uint32_t block[3] = {0, 0, 0};
  uint32_t thread[3] = {0, 0, 0};
  uintptr_t pc = 0;        // An address in the code that did it; 0 when unknown.
  uintptr_t other_pc = 0;  // An address in the code of a race's other access.
  char detail[384] = "";
};

class Report {
 public:
  // Takes the key from the socket; false with errno set when there is none.
  bool open(int fd);
  bool is_open() const { return fd_ >= 0; }

  // Half of the key is that of digests.
  Digest digest_key() const { return {key_[2] | 1, key_[3], 0}; }

  // Thread-safe; also called from the fault handler, so it neither allocates nor blocks for long.
  void add(const Finding& finding);

  // A line about `call`; further findings are counted anew, and those of kind "unsupported" are
  // written again in each call.
  void add(const Call& call);

  // Findings of a kind and place seen before are written again.
  void forget_duplicates() { num_seen_ = 0; }

 private:
  bool is_duplicate(const Finding& finding);
  void send(const char* body, size_t size);

  struct Key {
    const char* kind;
    uintptr_t pc;
  };
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  int fd_ = -1;
  uint64_t inode_ = 0;
  uint64_t key_[4] = {};
  int num_lines_ = 0;
  Key seen_[64] = {};
  int num_seen_ = 0;
};

// The module that holds an address, as a base name, and the address's offset in it.
struct CodePlace {
  const char* module = "";
  uintptr_t offset = 0;
};
CodePlace locate(uintptr_t pc);

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_REPORT_H_
