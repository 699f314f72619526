// SPDX-License-Identifier: Apache-2.0
//
// Worker: one Python process (harness/forge/verify.py) that answers questions in JSON lines.
#ifndef MC_FORGE_WORKER_H_
#define MC_FORGE_WORKER_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "core/result.h"

namespace mc::forge {

class Worker {
 public:
  // Its standard error is ours.  It ends with its standard input.
  static Result<std::unique_ptr<Worker>> start(const std::vector<std::string>& argv);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // One line there, one line back.  kUnavailable where the process died.
  // REQUIRES: `question` holds no line break.
  Result<std::string> ask(std::string_view question);

 private:
  Worker(pid_t pid, Fd to, Fd from) : pid_(pid), to_(std::move(to)), from_(std::move(from)) {}

  pid_t pid_;
  Fd to_, from_;
  std::string rest_;  // Read, and of the next answer.
};

}  // namespace mc::forge

#endif  // MC_FORGE_WORKER_H_
