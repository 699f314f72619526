// SPDX-License-Identifier: Apache-2.0
//
// ProgressBar: one line on standard error, redrawn in place; on anything but a terminal, a line for
// each long step and nothing else.  Thread-safe.
#ifndef MC_CLI_PROGRESS_H_
#define MC_CLI_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace mc::cli {

class ProgressBar {
 public:
  explicit ProgressBar(size_t total);
  ~ProgressBar() { finish(); }
  // A long step begins that is not counted.
  void note(std::string_view step);
  // One more of the total is done.
  void advance(std::string_view what);
  // The same for work whose total changes on the way.
  void show(size_t done, size_t total, std::string_view what);
  void finish();

 private:
  void draw(std::string_view text);

  // Constant after construction.
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_;

  std::mutex mutex_;  // Guards the rest.
  size_t total_ = 0;
  size_t done_ = 0;
  bool drawn_ = false;
};

}  // namespace mc::cli

#endif  // MC_CLI_PROGRESS_H_
