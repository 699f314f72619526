// SPDX-License-Identifier: Apache-2.0
//
// run(): runs one program, such as a compiler, from start to end in the sandbox.
//
//   Command command{.argv = {"/usr/bin/g++", "-c", "a.cc"}, .directory = work};
//   command.profile.writable = {work};
//   MC_TRY(Completed completed, run(command), "compile");
//   if (!succeeded(completed)) show(completed.err.text());
#ifndef MC_SANDBOX_RUN_H_
#define MC_SANDBOX_RUN_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "sandbox/child.h"
#include "sandbox/profile.h"

namespace mc::sandbox {

// A profile for trusted programs: may execute and fork.
Profile program_profile();

struct Command {
  std::vector<std::string> argv = {};         // argv[0] is an absolute path.
  std::vector<std::string> environment = {};  // "NAME=value"; nothing is inherited.
  std::string directory = "/tmp";             // The working directory, as a path inside.
  Profile profile = program_profile();
  size_t output_bytes_max = size_t{1} << 20;  // The limit for each stream.
  std::vector<int> descriptors = {};          // Inherited by the program, with the same numbers.
  // Called with output of the program as it arrives.
  std::function<void(bool is_error, std::string_view text)> on_output = {};
  // Called now and then; the program is killed when it returns false.
  std::function<bool()> goes_on = {};
};

// The first and last bytes of a stream, half of the limit each, so that long output costs no
// memory.
class Output {
 public:
  explicit Output(size_t bytes_max)
      : head_max_(bytes_max / 2), tail_max_(bytes_max - bytes_max / 2) {}
  void append(const char* data, size_t size);
  bool is_truncated() const;
  // Head and tail, with a line between them that contains the number of missing bytes.
  std::string text() const;

 private:
  size_t head_max_;
  size_t tail_max_;
  std::string head_;
  std::string tail_;  // At most twice tail_max_; the last tail_max_ bytes count.
  uint64_t dropped_ = 0;
};

struct Completed {
  Ending ending;
  Output out{0};
  Output err{0};
  std::chrono::microseconds wall{0};
  Usage usage;
};

bool succeeded(const Completed& completed);

// Runs `command` with empty standard input until it ends or exceeds a limit.  An error means that
// the program could not be started: kNotFound when there is no such program, kInvalidInput when
// `argv` is empty, kUnavailable when the sandbox does not work.  Thread-safe.
Result<Completed> run(const Command& command);

}  // namespace mc::sandbox

#endif  // MC_SANDBOX_RUN_H_
