// SPDX-License-Identifier: Apache-2.0
// The findings report: JSON lines in a file shared with another process.
//
// Lines are bounded, complete and never more than kMcEmuFindingsMax; a finding of the same kind at
// the same address is written once.  The first byte of a line is stored last, so a reader that
// stops at the first zero byte never sees half a line, even after a crash.
#ifndef MC_EMU_RUNTIME_REPORT_H_
#define MC_EMU_RUNTIME_REPORT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mc::emu {

struct Finding {
  const char* kind = "";
  const char* kernel = "";
  uint32_t block[3] = {0, 0, 0};
  uint32_t thread[3] = {0, 0, 0};
  uintptr_t pc = 0;  // An address in the code that did it; 0 when unknown.
  char detail[384] = "";
};

class Report {
 public:
  // Maps the file; false with errno set when it cannot be mapped.
  bool open(int fd);

  // Thread-safe; also called from the fault handler, so it neither allocates nor blocks for long.
  void add(const Finding& finding);

  // Findings of a kind and place seen before are written again.
  void forget_duplicates() { num_seen_ = 0; }

 private:
  bool is_duplicate(const Finding& finding);

  struct Key {
    const char* kind;
    uintptr_t pc;
  };
  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  char* text_ = nullptr;
  size_t used_ = 0;
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
