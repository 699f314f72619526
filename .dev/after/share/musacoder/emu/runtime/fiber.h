// SPDX-License-Identifier: Apache-2.0
// Fibres: stacks that one OS thread switches between in a few nanoseconds.
//
// A switch saves the callee-saved registers and nothing else: no signal mask, no floating-point
// control words.  A fiber never moves to another OS thread, so compilers may keep addresses of
// thread-local variables across a switch.
#ifndef MC_EMU_RUNTIME_FIBER_H_
#define MC_EMU_RUNTIME_FIBER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mc::emu {

constexpr size_t kStackBytes = 256 * 1024;

struct Fiber {
  void* stack_pointer = nullptr;  // Valid while the fiber is not running.
  char* stack = nullptr;          // Lowest usable byte; an inaccessible page lies below.
};

extern "C" {
// Saves the caller's registers on its stack, stores its stack pointer and continues at `to`.
void mc_emu_fiber_switch(void** save, void* to);
// Continues at `to` and forgets the caller.  Does not touch the caller's stack.
[[noreturn]] void mc_emu_fiber_jump(void* to);
}

// A growing set of fibers, all of which start in one function that never returns.
class FiberPool {
 public:
  explicit FiberPool(void (*entry)()) : entry_(entry) {}
  ~FiberPool();
  FiberPool(const FiberPool&) = delete;
  FiberPool& operator=(const FiberPool&) = delete;

  // A parked or fresh fiber; null when no stack can be mapped.
  Fiber* acquire();
  void park(Fiber* fiber) { free_.push_back(fiber); }

  // Forgets what all fibers were doing: each starts anew when next switched to.
  void abandon_all();

  // True if `address` is in a stack, or in the page below one.
  bool is_stack(uintptr_t address) const;
  bool is_stack_guard(uintptr_t address) const;

 private:
  Fiber* create();
  void prepare(Fiber* fiber, size_t index);

  void (*entry_)();
  std::vector<Fiber*> all_;
  std::vector<Fiber*> free_;
};

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_FIBER_H_
