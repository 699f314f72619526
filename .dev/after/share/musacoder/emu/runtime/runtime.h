// SPDX-License-Identifier: Apache-2.0
// The one emulator of a process: arena, report, errors and the pool of workers.
//
// CUDA's own model is one implicit device for a process, and instrumented code calls in from
// anywhere, so this is one of the few objects with a global address.
#ifndef MC_EMU_RUNTIME_RUNTIME_H_
#define MC_EMU_RUNTIME_RUNTIME_H_

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/arena.h"
#include "runtime/call.h"
#include "runtime/mc_emu.h"
#include "runtime/report.h"
#include "runtime/worker.h"

struct McEmuGraph;

namespace mc::emu {

class Runtime {
 public:
  static Runtime& get();

  // Idempotent; 0 or errno.
  int start(const McEmuOptions* options);
  bool is_started() const { return is_started_; }

  Arena& arena() { return arena_; }
  Report& report() { return report_; }
  Call& call() { return call_; }
  void begin_call();
  void end_call();

  // Bytes on either side; counts what crosses, and carries origins along.
  void copy(void* to, const void* from, size_t size);
  void fill(void* to, int value, size_t size);
  // Something other than a launch writes here; the two above say so themselves.
  void note_write(const void* to);
  bool has_race_checks() const { return has_race_checks_; }

  // Runs a checked launch to its end and returns the error.
  int launch(const McEmuLaunch& launch);
  void set_schedule(uint64_t seed) { schedule_ = seed; }

  // cudaHostRegister and its opposite.
  void register_host(uintptr_t address, size_t size) { registered_[address] = size; }
  void unregister_host(uintptr_t address) { registered_.erase(address); }
  bool is_registered(uintptr_t address) const;

  // cudaFuncSetAttribute(MaxDynamicSharedMemorySize).
  int allow_shared(const void* function, size_t bytes);

  int last_error() const { return last_error_; }
  int take_last_error();
  int set_last_error(int error);
  int sticky_error() const { return sticky_error_; }
  void reset();

  // A new number for accesses that are ordered after all before.
  uint32_t next_launch_number();

 private:
  void record(const McEmuLaunch& launch, McEmuGraph* graph);
  int check_rules(const McEmuLaunch& launch, const Module* module, std::string* reason) const;
  size_t shared_limit(const McEmuLaunch& launch, const Module* module) const;
  bool start_workers_for_good();
  void add_worker();
  void run_job(Job* job);
  void worker_main(int index);

  bool is_started_ = false;
  bool has_race_checks_ = true;
  int num_workers_ = 1;
  Arena arena_;
  Report report_;
  Call call_;
  bool is_final_ = false;  // kMcEmuClosed.
  std::atomic<uint64_t> schedule_{0};
  uint32_t launch_number_ = 0;
  int last_error_ = 0;
  std::atomic<int> sticky_error_{0};
  std::map<uintptr_t, size_t> registered_;        // Host memory, by its begin.
  std::map<std::string, size_t> shared_allowed_;  // Keys are kernels; "" is any.

  // The pool: job_, generation_ and running_ are guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> pool_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int wanted_ = 0;  // Workers that may still join the job.
  int running_ = 0;
};

// Installs the handlers for faults; and an alternate stack for the calling OS thread.
void install_fault_handlers();
void use_alternate_stack();

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_RUNTIME_H_
