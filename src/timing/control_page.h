// SPDX-License-Identifier: Apache-2.0
//
// ControlPage: the words by which supervisor, contestant and device tell each other where a batch
// of timed calls stands (device/mc_device.h).  The contestant may write anything there; that can
// only make a bracket of the supervisor's clock wrong by as much as the judge's look at the
// outputs, right after it, would notice.
#ifndef MC_TIMING_CONTROL_PAGE_H_
#define MC_TIMING_CONTROL_PAGE_H_

#include <cstddef>
#include <cstdint>

#include "core/fd.h"
#include "core/result.h"

namespace mc::timing {

class ControlPage {
 public:
  static Result<ControlPage> create();
  ControlPage(ControlPage&& other) noexcept;
  ControlPage& operator=(ControlPage&&) = delete;
  ~ControlPage();

  const Fd& fd() const { return fd_; }

  // Lets batch `number` run.
  void open_gate(uint32_t number);
  // Has batch `number` traced.
  void trace(uint32_t number);
  // The last batch that waits for nothing but the gate, and the last one that is over.
  uint32_t ready() const;
  uint32_t done() const;
  // How much the last batch that is over launched, and how much of it of its process's own.
  uint32_t launches() const;
  uint32_t launches_own() const;

 private:
  uint32_t load(size_t word) const;
  ControlPage(Fd fd, uint32_t* words) : fd_(std::move(fd)), words_(words) {}
  Fd fd_;
  uint32_t* words_;
};

}  // namespace mc::timing

#endif  // MC_TIMING_CONTROL_PAGE_H_
