// SPDX-License-Identifier: Apache-2.0
//
// Channel: framed messages with file descriptors over a Unix stream socket.
//
// A message is a 4-byte little-endian length, then that many bytes of JSON; at most one descriptor
// travels with its first byte (docs/architecture.md, "Messages").  The peer may be hostile: lengths
// and nesting are bounded, both directions have a deadline, and surplus descriptors are closed.
#ifndef MC_WORKER_CHANNEL_H_
#define MC_WORKER_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fd.h"
#include "core/result.h"

namespace mc::worker {

inline constexpr size_t kMessageBytesMax = 16 << 20;

using TimePoint = std::chrono::steady_clock::time_point;

struct Message {
  std::string json;
  Fd region;  // Closed when none was sent.
};

class Channel {
 public:
  // Blocks until the socket is ready: returns ok, or the reason to give up.  A caller can watch a
  // child's end, limits and output while a message is in transit.  `events` as for poll(2).
  using Wait = std::function<Status(int fd, short events)>;

  // Both ends of a new socket pair; the second is for the child.
  static Result<std::pair<Channel, Fd>> create_pair();

  int fd() const { return fd_.get(); }
  Status send(std::string_view json, const std::vector<int>& fds, const Wait& wait) const;
  Result<Message> receive(const Wait& wait) const;
  // True if there are bytes that were not received yet.
  bool has_unread() const;

 private:
  explicit Channel(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;  // Non-blocking.
};

}  // namespace mc::worker

#endif  // MC_WORKER_CHANNEL_H_
