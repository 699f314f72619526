// SPDX-License-Identifier: Apache-2.0
//
// ProgressBar: one line on standard error, redrawn in place each second; on anything but a
// terminal, a line for each long step, and one a minute.  Thread-safe.
#ifndef MC_CLI_PROGRESS_H_
#define MC_CLI_PROGRESS_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace mc::cli {

class ProgressBar {
 public:
  explicit ProgressBar(size_t total);
  ~ProgressBar() { finish(); }
  // A long step begins that is not counted.  Its text says how long it may take.
  void note(std::string_view step);
  // One more of the total is done.
  void advance(std::string_view what);
  // The same for work whose total changes on the way.
  void show(size_t done, size_t total, std::string_view what);
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void tick(const std::stop_token& stop);
  // REQUIRES of these: mutex_ is held.
  void count(size_t done, std::string_view what);
  std::string line() const;
  void draw();

  // Constant after construction.
  const bool is_terminal_;
  const Clock::time_point start_;

  std::mutex mutex_;  // Guards the rest.
  std::condition_variable_any ended_;
  size_t total_ = 0;
  size_t done_ = 0;
  std::string text_;
  bool is_step_ = false;  // The text is of a step that is not counted.
  Clock::time_point text_since_;
  // The counted work that the time that is left follows from.
  Clock::time_point counted_since_;
  size_t counted_from_ = 0;
  Clock::time_point printed_;  // The last line, where there is no terminal.
  bool drawn_ = false;
  std::jthread ticker_;
};

}  // namespace mc::cli

#endif  // MC_CLI_PROGRESS_H_
