// SPDX-License-Identifier: Apache-2.0
#include "timing/control_page.h"

#include <atomic>
#include <utility>

#include <sys/mman.h>

namespace mc::timing {
namespace {

constexpr size_t kBytes = 4096;
enum Word { kGate, kReady, kDone, kTraced, kLaunches, kOwnLaunches };

}  // namespace

Result<ControlPage> ControlPage::create() {
  MC_TRY(Fd fd, make_memfd("mc-control", kBytes), "control page");
  void* page = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return system_error(ErrorCode::kUnavailable, "map a control page");
  return ControlPage(std::move(fd), static_cast<uint32_t*>(page));
}

ControlPage::ControlPage(ControlPage&& other) noexcept
    : fd_(std::move(other.fd_)), words_(std::exchange(other.words_, nullptr)) {}

ControlPage::~ControlPage() {
  if (words_ != nullptr) ::munmap(words_, kBytes);
}

void ControlPage::open_gate(uint32_t number) {
  std::atomic_ref(words_[kGate]).store(number, std::memory_order_release);
}

void ControlPage::trace(uint32_t number) {
  std::atomic_ref(words_[kTraced]).store(number, std::memory_order_release);
}

uint32_t ControlPage::ready() const { return load(kReady); }
uint32_t ControlPage::done() const { return load(kDone); }
uint32_t ControlPage::launches() const { return load(kLaunches); }
uint32_t ControlPage::launches_own() const { return load(kOwnLaunches); }

uint32_t ControlPage::load(size_t word) const {
  return std::atomic_ref(words_[word]).load(std::memory_order_acquire);
}

}  // namespace mc::timing
