// SPDX-License-Identifier: Apache-2.0
//
// LineChild: a process that reads lines on its standard input and writes lines on its standard
// output.  It inherits our standard error.
//
//   MC_TRY(auto child,
//          LineChild::start({"musacoder", "eval", "--stream"}, AtEnd::kTerminate), "…");
//   MC_TRY_VOID(child->send(request + "\n"), "…");
//   MC_TRY(const std::string reply, child->receive(), "…");
#ifndef MC_CORE_LINE_CHILD_H_
#define MC_CORE_LINE_CHILD_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/fd.h"
#include "core/result.h"

namespace mc {

class LineChild {
 public:
  static constexpr size_t kLineBytesMax = size_t{64} << 20;
  // The action of the destructor once the child's input is closed: wait for the child, or kill it.
  enum class AtEnd { kWait, kTerminate };

  // kInvalidInput where there is no such program.  REQUIRES: `argv` is not empty.
  static Result<std::unique_ptr<LineChild>> start(const std::vector<std::string>& argv,
                                                  AtEnd at_end);
  ~LineChild();
  LineChild(const LineChild&) = delete;
  LineChild& operator=(const LineChild&) = delete;

  // Sends all of `text`.  kUnavailable where the child has ended.  One thread at a time.
  Status send(std::string_view text);
  // The next line, without its line break; blocks until it is complete.  kUnavailable where the
  // child has ended, kProtocol for a line that is too long.  Only one thread at a time may receive;
  // another one may send.
  Result<std::string> receive();
  // Sends one line and receives one line.  REQUIRES: `line` has no line break.
  Result<std::string> call(std::string_view line);
  // Ends the calls of send() and receive() that block in other threads.
  void hang_up();

 private:
  LineChild(Fd channel, pid_t pid, AtEnd at_end)
      : channel_(std::move(channel)), pid_(pid), at_end_(at_end) {}

  const Fd channel_;
  const pid_t pid_;
  const AtEnd at_end_;
  std::string rest_;  // Bytes that were read beyond the last line that was returned.
};

}  // namespace mc

#endif  // MC_CORE_LINE_CHILD_H_
