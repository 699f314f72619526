// SPDX-License-Identifier: Apache-2.0
//
// OutputTail: drains a pipe and keeps its last bytes, so that a child with endless output neither
// blocks nor fills memory.
#ifndef MC_WORKER_OUTPUT_TAIL_H_
#define MC_WORKER_OUTPUT_TAIL_H_

#include <cstddef>
#include <memory>
#include <string>

#include "core/fd.h"
#include "core/result.h"

namespace mc::worker {

class OutputTail {
 public:
  // The descriptor is for the child; the caller closes it once the child has it.
  static Result<std::pair<OutputTail, Fd>> create(size_t bytes_max);
  OutputTail(OutputTail&&) noexcept;
  OutputTail& operator=(OutputTail&&) noexcept;
  // Waits for the end of the pipe.  REQUIRES: every process that may write to it is dead.
  ~OutputTail();

  std::string text() const;

 private:
  struct State;
  explicit OutputTail(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_OUTPUT_TAIL_H_
