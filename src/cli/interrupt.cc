// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>

#include <unistd.h>

namespace mc::cli {
namespace {

// A signal handler can access only global state, and may not allocate.  While g_line changes,
// g_bytes is 0, so a handler that interrupts the change prints nothing.  The default order of the
// atomic keeps the bytes of the line before the store of its length.
constexpr size_t kBytesMax = 4096 + 200;  // A path and the words around it.
char g_line[kBytesMax];
std::atomic<size_t> g_bytes = 0;

void end(int signal) {
  const ssize_t ignored = ::write(STDERR_FILENO, g_line, g_bytes.load());
  static_cast<void>(ignored);
  // The default action is active again (SA_RESETHAND), and ends the program when the handler
  // returns.
  ::raise(signal);
}

}  // namespace

void print_when_ended(std::string_view line) {
  g_bytes = 0;
  const size_t bytes = std::min(line.size(), kBytesMax - 2);
  g_line[0] = '\n';  // A new line after the progress bar.
  std::copy_n(line.data(), bytes, g_line + 1);
  g_line[bytes + 1] = '\n';
  g_bytes = line.empty() ? 0 : bytes + 2;
  struct sigaction action{};
  action.sa_handler = line.empty() ? SIG_DFL : &end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

}  // namespace mc::cli
