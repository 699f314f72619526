// SPDX-License-Identifier: Apache-2.0
//
// The shared memory between a candidate process and a device process: a page of words, a ring of
// commands and room for one reply.
//
// There is one sender and one receiver.  The sender queues a command without a system call while
// the receiver is awake.  The receiver trusts nothing in this memory: it copies a command out
// before it reads its fields, and keeps its own read position.
//
// Memory order.  A store of `written` releases the bytes of the commands before it, and the
// receiver's acquiring load sees them.  A releasing store of `read` follows the copy of a command,
// so the sender may overwrite its bytes.  The addition to `replies` releases the reply's bytes.
// `written` and `wake` are sequentially consistent: the receiver clears `wake` and then reads
// `written`, the sender stores `written` and then reads `wake`, so that at least one of them sees
// the other's store and no wake-up is lost.  Both sides also wake up by a timeout.
//
// Lifetime.  The device process creates a channel for one candidate, and sets `is_closed` when it
// stops serving.  Each side unmaps its own mapping; the memory ends with the last one.
#ifndef MC_DEVICE_CHANNEL_H_
#define MC_DEVICE_CHANNEL_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "commands.h"

namespace mc::device {

constexpr uint64_t kRingBytes = 8u << 20;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kChannelBytes = kPageBytes + kRingBytes + kReplyBytesMax;
constexpr int kDeviceAttributesMax = 160;

struct Page {
  // Positions only grow; a position modulo kRingBytes is an offset in the ring.
  alignas(64) std::atomic<uint64_t> written;
  alignas(64) std::atomic<uint64_t> read;
  // Futexes: the receiver sleeps on `wake` if it is 0, the sender on `replies`.
  alignas(64) std::atomic<uint32_t> wake;
  alignas(64) std::atomic<uint32_t> replies;  // The number of replies so far.
  uint32_t reply_status;
  uint32_t reply_bytes;
  // A CUresult: the first error of a command without a reply since the client last read this field.
  std::atomic<uint32_t> error;
  std::atomic<uint32_t> is_closed;  // The device process is gone.

  // Properties of the device, constant once the candidate process has the channel.
  alignas(64) uint64_t arena;
  uint64_t arena_bytes;
  uint64_t memory_bytes_max;  // How much of the arena may be mapped at once.
  uint64_t regions;           // The address of the inputs' memory, which other processes share.
  uint64_t regions_bytes;
  uint64_t total_bytes;
  int32_t driver_version;
  int32_t attributes[kDeviceAttributesMax];  // The index is a CUdevice_attribute.
  char name[256];
  uint8_t uuid[16];
  char pci_bus_id[16];
};
static_assert(sizeof(Page) <= kPageBytes);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Waits until another process wakes the word, or it is not `value`, or the time is over: a lost
// wake-up costs no more.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value,
                       std::chrono::milliseconds time_max) {
  const timespec limit{0, static_cast<long>(1'000'000 * time_max.count())};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

inline void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace mc::device

#endif  // MC_DEVICE_CHANNEL_H_
