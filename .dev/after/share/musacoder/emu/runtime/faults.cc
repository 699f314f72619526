// SPDX-License-Identifier: Apache-2.0
// Memory faults and the like.  A fault in a kernel becomes a finding and ends the block: the
// handler, on its own stack, sets the interrupted context to continue where the block was started.
// A fault in host code is written down and then kills the process, as it would without an emulator.
#include <csignal>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <ucontext.h>

#include "mc_emu/errors.h"
#include "runtime/runtime.h"

namespace mc::emu {
namespace {

constexpr size_t kAlternateStackBytes = 64 * 1024;
constexpr greg_t kFaultIsWrite = 2;  // A bit of x86's page-fault error code.

void continue_at(ucontext_t* context, void* stack_pointer) {
  greg_t* registers = context->uc_mcontext.gregs;
  registers[REG_RDI] = reinterpret_cast<greg_t>(stack_pointer);
  registers[REG_RIP] = reinterpret_cast<greg_t>(&mc_emu_fiber_jump);
}

void report_host_fault(int signal_number, uintptr_t address, bool is_write, uintptr_t pc) {
  const Arena& arena = Runtime::get().arena();
  const Allocation* buffer = arena.contains(address) ? arena.find(address) : nullptr;
  Finding f;
  f.kind = buffer == nullptr ? "host_crash"
           : is_write        ? "out_of_bounds_write"
                             : "out_of_bounds_read";
  f.pc = pc;
  if (buffer != nullptr && address - buffer->begin < buffer->end - buffer->begin) {
    std::snprintf(f.detail, sizeof f.detail,
                  "host code used device memory, which only kernels and copies can (byte %zu of a "
                  "buffer of %zu)",
                  static_cast<size_t>(address - buffer->begin),
                  static_cast<size_t>(buffer->end - buffer->begin));
  } else {
    std::snprintf(f.detail, sizeof f.detail, "host code: signal %d at address 0x%zx%s",
                  signal_number, static_cast<size_t>(address),
                  buffer != nullptr ? ", beyond a device buffer" : "");
  }
  Runtime::get().report().add(f);
}

void handle_fault(int signal_number, siginfo_t* info, void* raw_context) {
  ucontext_t* context = static_cast<ucontext_t*>(raw_context);
  const uintptr_t pc = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RIP]);
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_write = (context->uc_mcontext.gregs[REG_ERR] & kFaultIsWrite) != 0;
  if (Worker* worker = Worker::current()) {
    void* home = signal_number == SIGFPE ? worker->fail_at_division(pc)
                                         : worker->fail_at_fault(address, is_write, pc);
    continue_at(context, home);
    return;
  }
  if (signal_number != SIGFPE) report_host_fault(signal_number, address, is_write, pc);
  signal(signal_number, SIG_DFL);  // Returning faults again, and that is final.
}

}  // namespace

void install_fault_handlers() {
  struct sigaction action{};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE}) {
    sigaction(signal_number, &action, nullptr);
  }
}

void use_alternate_stack() {
  void* stack = mmap(nullptr, kAlternateStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) return;
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = kAlternateStackBytes;
  sigaltstack(&alternate, nullptr);
}

}  // namespace mc::emu
