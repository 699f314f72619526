// SPDX-License-Identifier: Apache-2.0
// Fibres: stacks that one OS thread switches between in a few nanoseconds.
//
// A switch saves the callee-saved registers and nothing else: no signal mask, no floating-point
// control words.  A fibre never moves to another OS thread, so compilers may keep addresses of
// thread-local variables across a switch.
#ifndef MC_EMU_RUNTIME_FIBRE_H_
#define MC_EMU_RUNTIME_FIBRE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mc::emu {

constexpr size_t kStackBytes = 256 * 1024;

struct Fibre {
  void* stack_pointer = nullptr;  // Valid while the fibre is not running.
  char* stack = nullptr;          // Lowest usable byte; an inaccessible page lies below.
};

extern "C" {
// Saves the caller's registers on its stack, stores its stack pointer and continues at `to`.
void mc_emu_fibre_switch(void** save, void* to);
// Continues at `to` and forgets the caller.  Does not touch the caller's stack.
[[noreturn]] void mc_emu_fibre_jump(void* to);
}

// A growing set of fibres, all of which start in one function that never returns.
class FibrePool {
 public:
  explicit FibrePool(void (*entry)()) : entry_(entry) {}
  ~FibrePool();
  FibrePool(const FibrePool&) = delete;
  FibrePool& operator=(const FibrePool&) = delete;

  // A parked or fresh fibre; null when no stack can be mapped.
  Fibre* acquire();
  void park(Fibre* fibre) { free_.push_back(fibre); }

  // Forgets what all fibres were doing: each starts anew when next switched to.
  void abandon_all();

  // Whether `address` lies in a stack or the page below one.
  bool is_stack(uintptr_t address) const;
  bool is_stack_guard(uintptr_t address) const;

 private:
  Fibre* create();
  void prepare(Fibre* fibre, size_t index);

  void (*entry_)();
  std::vector<Fibre*> all_;
  std::vector<Fibre*> free_;
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_FIBRE_H_
