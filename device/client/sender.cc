// SPDX-License-Identifier: Apache-2.0
#include "client/sender.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "check.h"

namespace mc::device {
namespace {

constexpr int kSpins = 2000;  // About 20 us: most replies arrive sooner.
constexpr std::chrono::milliseconds kWaitMax{50};
constexpr uint32_t kDeinitialized = 4;  // CUDA_ERROR_DEINITIALIZED: the device process is gone.

void pause_cpu() { __builtin_ia32_pause(); }

}  // namespace

bool Sender::open(int descriptor) {
  void* memory = mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return false;
  char* base = static_cast<char*>(memory);
  page_ = static_cast<Page*>(memory);
  ring_ = base + kPageBytes;
  reply_ = ring_ + kRingBytes;
  written_ = page_->written.load();
  replies_ = page_->replies.load();
  return true;
}

// The ring's next contiguous `bytes` bytes; waits until there is room.
char* Sender::reserve(uint32_t bytes) {
  MC_CHECK(bytes <= kRingBytes && written_ % kCommandAlignment == 0);
  const uint64_t left = kRingBytes - written_ % kRingBytes;
  const uint64_t skipped = left < bytes ? left : 0;
  while (written_ + skipped + bytes - page_->read.load(std::memory_order_acquire) > kRingBytes) {
    publish();
    if (page_->is_closed.load() != 0) _exit(1);  // No reply will ever come.
    pause_cpu();
  }
  if (skipped > 0) {
    const Header pad{Op::kPad, static_cast<uint32_t>(skipped), 0};
    std::memcpy(ring_ + written_ % kRingBytes, &pad, sizeof pad);
    written_ += skipped;
  }
  return ring_ + written_ % kRingBytes;
}

void Sender::put(Op op, const void* command, size_t bytes, Tail tail) {
  MC_CHECK(is_open() && (tail.data != nullptr || tail.bytes == 0));
  const size_t whole = sizeof(Header) + bytes + tail.bytes;
  const auto rounded = static_cast<uint32_t>((whole + kCommandAlignment - 1) / kCommandAlignment *
                                             kCommandAlignment);
  char* target = reserve(rounded);
  const Header header{op, rounded, location};
  std::memcpy(target, &header, sizeof header);
  std::memcpy(target + sizeof header, command, bytes);
  if (tail.bytes > 0) std::memcpy(target + sizeof header + bytes, tail.data, tail.bytes);
  written_ += rounded;
  publish();
}

void Sender::publish() {
  page_->written.store(written_, std::memory_order_seq_cst);
  if (page_->wake.load(std::memory_order_seq_cst) == 0) {
    page_->wake.store(1, std::memory_order_seq_cst);
    futex_wake(page_->wake);
  }
}

uint32_t Sender::receive(void* data, size_t bytes) {
  MC_CHECK(data != nullptr || bytes == 0);
  for (int spin = 0; page_->replies.load(std::memory_order_acquire) == replies_; ++spin) {
    if (page_->is_closed.load() != 0) return kDeinitialized;
    if (spin < kSpins) {
      pause_cpu();
    } else {
      futex_wait(page_->replies, replies_, kWaitMax);
    }
  }
  ++replies_;
  const size_t given = std::min<size_t>(bytes, page_->reply_bytes);
  if (given > 0) std::memcpy(data, reply_, given);
  return page_->reply_status;
}

}  // namespace mc::device
