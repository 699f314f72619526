// SPDX-License-Identifier: Apache-2.0
//
// Sender: the candidate process's end of a channel (channel.h).  Thread-safe.
#ifndef MC_DEVICE_CLIENT_SENDER_H_
#define MC_DEVICE_CLIENT_SENDER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <type_traits>

#include "channel.h"

namespace mc::device {

// Bytes that follow a command's fixed part.
struct Tail {
  const void* data = nullptr;
  size_t bytes = 0;
};

class Sender {
 public:
  // The Header::location of this thread's next commands.
  inline static thread_local uint64_t location = 0;

  // Maps the channel behind the descriptor; false on failure.
  bool open(int descriptor);
  bool is_open() const { return page_ != nullptr; }
  // REQUIRES: is_open().
  Page& page() const { return *page_; }

  // Queues a command.
  template <typename Command>
  void send(Op op, const Command& command, Tail tail = {}) {
    static_assert(std::is_trivially_copyable_v<Command>);  // It crosses to another process.
    const std::lock_guard lock(mutex_);
    put(op, &command, sizeof command, tail);
  }

  // Queues a command and waits for its reply, of which at most `bytes` bytes are copied to `data`.
  // Returns the status, a CUresult.
  template <typename Command>
  uint32_t call(Op op, const Command& command, void* data = nullptr, size_t bytes = 0,
                Tail tail = {}) {
    static_assert(std::is_trivially_copyable_v<Command>);
    const std::lock_guard lock(mutex_);
    put(op, &command, sizeof command, tail);
    return receive(data, bytes);
  }

 private:
  void put(Op op, const void* command, size_t bytes, Tail tail);
  char* reserve(uint32_t bytes);
  void publish();
  uint32_t receive(void* data, size_t bytes);

  std::mutex mutex_;
  Page* page_ = nullptr;
  char* ring_ = nullptr;
  const char* reply_ = nullptr;
  uint64_t written_ = 0;  // Guarded by mutex_.
  uint32_t replies_ = 0;  // Guarded by mutex_.
};

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_SENDER_H_
