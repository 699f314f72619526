// SPDX-License-Identifier: Apache-2.0
#include "runtime/fibre.h"

#include <sys/mman.h>

#include "runtime/check.h"

#ifndef __x86_64__
#error "fibres are written for x86-64 only"
#endif

// The continuation is reached by an indirect jump, not by `ret`: the processor's return predictor
// would be wrong at every switch.
asm(R"(
  .text
  .globl mc_emu_fibre_switch
  .type mc_emu_fibre_switch, @function
mc_emu_fibre_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size mc_emu_fibre_switch, .-mc_emu_fibre_switch

  .globl mc_emu_fibre_jump
  .type mc_emu_fibre_jump, @function
mc_emu_fibre_jump:
  movq %rdi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmpq *%rcx
  .size mc_emu_fibre_jump, .-mc_emu_fibre_jump
)");

namespace mc::emu {
namespace {
constexpr size_t kPage = 4096;
constexpr size_t kSavedWords = 7;  // Six registers and the address to continue at.
}  // namespace

FibrePool::~FibrePool() {
  for (Fibre* fibre : all_) {
    munmap(fibre->stack - kPage, kStackBytes + kPage);
    delete fibre;
  }
}

Fibre* FibrePool::acquire() {
  if (free_.empty()) return create();
  Fibre* fibre = free_.back();
  free_.pop_back();
  return fibre;
}

void FibrePool::abandon_all() {
  free_.clear();
  for (size_t i = all_.size(); i-- > 0;) {
    prepare(all_[i], i);
    free_.push_back(all_[i]);
  }
}

bool FibrePool::is_stack(uintptr_t address) const {
  for (const Fibre* fibre : all_) {
    if (address - reinterpret_cast<uintptr_t>(fibre->stack) < kStackBytes) return true;
  }
  return false;
}

bool FibrePool::is_stack_guard(uintptr_t address) const {
  for (const Fibre* fibre : all_) {
    if (address - (reinterpret_cast<uintptr_t>(fibre->stack) - kPage) < kPage) return true;
  }
  return false;
}

Fibre* FibrePool::create() {
  void* base = mmap(nullptr, kStackBytes + kPage, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  mprotect(base, kPage, PROT_NONE);
  Fibre* fibre = new Fibre{nullptr, static_cast<char*>(base) + kPage};
  prepare(fibre, all_.size());
  all_.push_back(fibre);
  free_.reserve(all_.capacity());  // Parking must not allocate: a fault handler may do it.
  return fibre;
}

// Stacks start at different offsets in a page, or all would compete for the same cache sets.
void FibrePool::prepare(Fibre* fibre, size_t index) {
  char* top = fibre->stack + kStackBytes - (index % 32) * 128;
  uintptr_t* words = reinterpret_cast<uintptr_t*>(top) - 1;  // Entry sees rsp % 16 == 8.
  *words = 0;                                                // Ends a debugger's walk.
  words -= kSavedWords;
  for (size_t i = 0; i + 1 < kSavedWords; ++i) words[i] = 0;
  MC_EMU_CHECK(reinterpret_cast<uintptr_t>(words + kSavedWords) % 16 == 8);
  words[kSavedWords - 1] = reinterpret_cast<uintptr_t>(entry_);
  fibre->stack_pointer = words;
}

}  // namespace mc::emu
