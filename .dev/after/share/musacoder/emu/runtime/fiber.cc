// SPDX-License-Identifier: Apache-2.0
#include "runtime/fiber.h"

#include <sys/mman.h>

#include "runtime/check.h"

#ifndef __x86_64__
#error "fibers are written for x86-64 only"
#endif

// The continuation is reached by an indirect jump, not by `ret`: the processor's return predictor
// would be wrong at every switch.  A switch is a jump behind the saving of registers.
asm(R"(
  .text
  .globl mc_emu_fiber_switch
  .type mc_emu_fiber_switch, @function
mc_emu_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rdi
  .size mc_emu_fiber_switch, .-mc_emu_fiber_switch

  .globl mc_emu_fiber_jump
  .type mc_emu_fiber_jump, @function
mc_emu_fiber_jump:
  movq %rdi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size mc_emu_fiber_jump, .-mc_emu_fiber_jump
)");

namespace mc::emu {
namespace {
constexpr size_t kPage = 4096;
constexpr size_t kSavedWords = 7;  // Six registers and the address to continue at.
}  // namespace

FiberPool::~FiberPool() {
  for (Fiber* fiber : all_) {
    munmap(fiber->stack - kPage, kStackBytes + kPage);
    delete fiber;
  }
}

Fiber* FiberPool::acquire() {
  if (free_.empty()) return create();
  Fiber* fiber = free_.back();
  free_.pop_back();
  return fiber;
}

void FiberPool::abandon_all() {
  free_.clear();
  for (size_t i = all_.size(); i-- > 0;) {
    prepare(all_[i], i);
    free_.push_back(all_[i]);
  }
}

bool FiberPool::is_stack(uintptr_t address) const {
  for (const Fiber* fiber : all_) {
    if (address - reinterpret_cast<uintptr_t>(fiber->stack) < kStackBytes) return true;
  }
  return false;
}

bool FiberPool::is_stack_guard(uintptr_t address) const {
  for (const Fiber* fiber : all_) {
    if (address - (reinterpret_cast<uintptr_t>(fiber->stack) - kPage) < kPage) return true;
  }
  return false;
}

Fiber* FiberPool::create() {
  void* base = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  mprotect(base, kPage, PROT_NONE);
  Fiber* fiber = new Fiber{nullptr, static_cast<char*>(base) + kPage};
  prepare(fiber, all_.size());
  all_.push_back(fiber);
  free_.reserve(all_.capacity());  // Parking must not allocate: a fault handler may do it.
  return fiber;
}

// Stacks start at different offsets in a page, or all would compete for the same cache sets.
void FiberPool::prepare(Fiber* fiber, size_t index) {
  char* top = fiber->stack + kStackBytes - (index % 32) * 128;
  uintptr_t* words = reinterpret_cast<uintptr_t*>(top) - 1;  // Entry sees rsp % 16 == 8.
  *words = 0;                                                // Ends a debugger's walk.
  words -= kSavedWords;
  for (size_t i = 0; i + 1 < kSavedWords; ++i) words[i] = 0;
  MC_EMU_CHECK(reinterpret_cast<uintptr_t>(words + kSavedWords) % 16 == 8);
  words[kSavedWords - 1] = reinterpret_cast<uintptr_t>(entry_);
  fiber->stack_pointer = words;
}

}  // namespace mc::emu
