// SPDX-License-Identifier: Apache-2.0
//
// The shared memory between a candidate process and a device process: a page of words, a ring of
// commands and room for one reply.
//
// There is one sender and one receiver.  Queueing a command takes no system call while the receiver
// is awake.  The receiver trusts nothing in here: it copies a command out before it looks at it,
// and keeps its own position.
#ifndef MC_DEVICE_CHANNEL_H_
#define MC_DEVICE_CHANNEL_H_

#include <atomic>
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
  // Futexes: the receiver sleeps on `wake` where it is 0, the sender on `replies`.
  alignas(64) std::atomic<uint32_t> wake;
  alignas(64) std::atomic<uint32_t> replies;  // How many there were.
  uint32_t reply_status;
  uint32_t reply_bytes;
  // The first error since it was taken, of a command without a reply: a CUresult.
  std::atomic<uint32_t> error;
  std::atomic<uint32_t> is_closed;  // The device process is gone.

  // Facts of the device, constant from the time when the candidate process gets the channel.
  alignas(64) uint64_t arena;
  uint64_t arena_bytes;
  uint64_t memory_bytes_max;  // How much of the arena may be mapped at once.
  uint64_t regions;           // The place of the memory of inputs, which others share.
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

}  // namespace mc::device

#endif  // MC_DEVICE_CHANNEL_H_
