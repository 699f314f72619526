// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "mc_emu/errors.h"
#include "runtime/check.h"
#include "runtime/coordinates.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"

#pragma GCC visibility push(default)
extern "C" {
int mc_emu_warp_size = 32;  // For kernels.  A candidate may change it: the runtime never reads it.
}
#pragma GCC visibility pop

namespace mc::emu {
namespace {

constexpr size_t kArenaDefaultBytes = size_t{1} << 38;
constexpr int kWorkersMax = 64;
constexpr size_t kArgumentBytesMax = 32 * 1024;  // CUDA's limit, about.
constexpr uint32_t kLaunchNumberMax = 0x7FF;  // The most that a record of device memory can hold.

std::string format(const char* text, size_t a, size_t b) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, text, a, b);
  return buffer;
}

// The processor time that this process has used, in all its threads.
uint64_t process_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Blocks that the device holds at once.
size_t blocks_resident(size_t threads, size_t shared_bytes) {
  return kMultiprocessors * blocks_per_multiprocessor(threads, shared_bytes);
}

// The system calls that threads that run kernels may make: memory, locks, signals, messages of the
// report and printf.  Device code can ask for nothing; this is what the runtime needs around it.
constexpr int kWorkerCalls[] = {SYS_brk,
                                SYS_clock_gettime,
                                SYS_clock_nanosleep,
                                SYS_exit,
                                SYS_exit_group,
                                SYS_fstat,
                                SYS_futex,
                                SYS_getpid,
                                SYS_getrandom,
                                SYS_gettid,
                                SYS_ioctl,
                                SYS_madvise,
                                SYS_mmap,
                                SYS_mprotect,
                                SYS_mremap,
                                SYS_munmap,
                                SYS_newfstatat,
                                SYS_restart_syscall,
                                SYS_rt_sigaction,
                                SYS_rt_sigprocmask,
                                SYS_rt_sigreturn,
                                SYS_sched_getaffinity,
                                SYS_sched_yield,
                                SYS_sendto,
                                SYS_sigaltstack,
                                SYS_tgkill,
                                SYS_write};

// Irrevocable, for the calling thread.
void forbid_other_calls() {
  constexpr size_t kCount = std::size(kWorkerCalls);
  std::vector<sock_filter> program;
  program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (size_t i = 0; i < kCount; ++i) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(kWorkerCalls[i]),
                               static_cast<uint8_t>(kCount - i), 0));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::abort();
  }
}

int choose_workers(int wanted) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return std::clamp(wanted > 0 ? wanted : cores, 1, kWorkersMax);
}

}  // namespace

// Never destroyed: workers may still wait when the process exits.
Runtime& Runtime::get() {
  static Runtime* const runtime = new Runtime;
  return *runtime;
}

int Runtime::start(const McEmuOptions* options) {
  const McEmuOptions defaults{sizeof(McEmuOptions), -1, 0, 0, 0, 0};
  const McEmuOptions& o = options == nullptr ? defaults : *options;
  if (is_final_) return EALREADY;
  if (o.warp_size != 0 && o.warp_size != kLanesNamed && o.warp_size != kLanesMax) return EINVAL;
  if (o.report_fd > 0 && !report_.open(o.report_fd)) return errno;
  has_race_checks_ = (o.flags & kMcEmuNoRaceChecks) == 0;
  warp_shift = o.warp_size == kLanesMax ? 7 : 5;
  mc_emu_warp_size = warp_size();
  if (is_started_) return 0;
  const bool is_reserved =
      o.arena_bytes != 0 ? arena_.reserve(o.arena_bytes) : arena_.reserve_up_to(kArenaDefaultBytes);
  if (!is_reserved) return ENOMEM;
  is_final_ = (o.flags & kMcEmuClosed) != 0;
  if (is_final_) arena_.close();
  num_workers_ = choose_workers(o.workers);
  install_fault_handlers();
  use_alternate_stack();
  is_started_ = true;
  return is_final_ && !start_workers_for_good() ? errno : 0;
}

int Runtime::take_last_error() {
  const int error = last_error_;
  last_error_ = sticky_error_;
  return error;
}

int Runtime::set_last_error(int error) {
  if (error != cudaSuccess) last_error_ = error;
  return error;
}

void Runtime::reset() {
  last_error_ = 0;
  sticky_error_ = 0;
  shared_allowed_.clear();
  report_.forget_duplicates();
}

bool Runtime::is_registered(uintptr_t address) const {
  const auto next = registered_.upper_bound(address);
  if (next == registered_.begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return address - begin < size;
}

// --- Calls and transfers.

void Runtime::begin_call() {
  // A device would have no error here, so the next call is judged by itself.
  if (sticky_error_ == cudaErrorNotSupported) sticky_error_ = last_error_ = 0;
  call_.begin(arena_.take_mapped_bytes(), report_.digest_key());
}

void Runtime::end_call() {
  call_.end();
  report_.add(call_);
}

void Runtime::note_write(const void* to) {
  const uintptr_t target = reinterpret_cast<uintptr_t>(to);
  if (!call_.is_taken() || !arena_.contains(target) || !arena_.find(target)->is_mapped) return;
  call_.note_late_work("an input was written");
}

void Runtime::copy(void* to, const void* from, size_t size) {
  if (size == 0) return;
  note_write(to);
  const uintptr_t target = reinterpret_cast<uintptr_t>(to);
  const uintptr_t source = reinterpret_cast<uintptr_t>(from);
  const bool is_to_device = arena_.contains(target), is_from_device = arena_.contains(source);
  arena_.open_at(target);
  arena_.open_at(source);
  std::memmove(to, from, size);
  arena_.close_at(source);
  arena_.close_at(target);
  // Pinned and managed memory lies in the arena and is the host's as well.
  const auto is_the_hosts = [&](bool is_inside, uintptr_t address) {
    return !is_inside || arena_.find(address)->is_host_visible;
  };
  const bool host_wrote = is_the_hosts(is_from_device, source);
  if (!host_wrote && is_the_hosts(is_to_device, target)) call_.note_to_host(size);
  if (!is_to_device) return;
  Origin* origins = arena_.view().origin_of(target);
  if (host_wrote) {
    const Origin origin = call_.is_active() ? Origin::kHost : Origin::kGiven;
    std::memset(origins, static_cast<int>(origin), size);
  } else {
    std::memmove(origins, arena_.view().origin_of(source), size);
    const bool is_plain =
        target - arena_.find(target)->begin == source - arena_.find(source)->begin;
    if (!is_plain) call_.note_moved(size);
  }
}

void Runtime::fill(void* to, int value, size_t size) {
  if (size == 0) return;
  note_write(to);
  const uintptr_t target = reinterpret_cast<uintptr_t>(to);
  arena_.open_at(target);
  std::memset(to, value, size);
  arena_.close_at(target);
  if (!arena_.contains(target)) return;
  std::memset(arena_.view().origin_of(target), static_cast<int>(Origin::kFill), size);
}

// --- Launch rules.

int Runtime::allow_shared(const void* function, size_t bytes) {
  if (bytes > kSharedOptInMax) return set_last_error(cudaErrorInvalidValue);
  const Module* module = Module::containing(function);
  const std::string name =
      module == nullptr ? "" : module->function_at(reinterpret_cast<uintptr_t>(function));
  shared_allowed_[name] = bytes;
  return 0;
}

size_t Runtime::shared_limit(const McEmuLaunch& launch, const Module* module) const {
  const std::string name = kernel_base_name(launch.kernel);
  const auto exact = shared_allowed_.find(name);
  if (exact != shared_allowed_.end()) return std::max(exact->second, kSharedDefaultMax);
  // A callee that is not a kernel's name (a pointer, a parameter): any allowance may be its own.
  const bool is_kernel_name = module != nullptr && module->has_function(name);
  size_t limit = kSharedDefaultMax;
  for (const auto& [kernel, bytes] : shared_allowed_) {
    if (kernel.empty() || !is_kernel_name) limit = std::max(limit, bytes);
  }
  return limit;
}

int Runtime::check_rules(const McEmuLaunch& l, const Module* module, std::string* reason) const {
  const size_t threads = size_t{l.block[0]} * l.block[1] * l.block[2];
  if (l.grid[0] == 0 || l.grid[1] == 0 || l.grid[2] == 0 || threads == 0) {
    *reason = "a dimension of grid or block is zero";
    return cudaErrorInvalidConfiguration;
  }
  if (l.block[0] > 1024 || l.block[1] > 1024 || threads > 1024 || l.block[2] > 64) {
    *reason = format("a block of %zu threads, %zu of them in z: at most 1024, and 64 in z", threads,
                     l.block[2]);
    return cudaErrorInvalidConfiguration;
  }
  if (l.grid[0] > 0x7FFFFFFF || l.grid[1] > 65535 || l.grid[2] > 65535) {
    *reason = format("a grid of %zu blocks in y and %zu in z: at most 65535", l.grid[1], l.grid[2]);
    return cudaErrorInvalidConfiguration;
  }
  const std::string name = kernel_base_name(l.kernel);
  const bool may_be_large =
      module != nullptr && module->shared_bytes() + l.shared_bytes > kSharedDefaultMax;
  const Module::SharedBytes of_arrays =
      may_be_large ? module->shared_bytes_of(name) : Module::SharedBytes{};
  if (of_arrays.most > kSharedDefaultMax) {
    *reason =
        format("%zu bytes of static shared memory: at most %zu", of_arrays.most, kSharedDefaultMax);
    return cudaErrorInvalidValue;
  }
  // An allowance is for dynamic memory alone; without one, static memory counts as well.
  const size_t allowed = shared_limit(l, module);
  const size_t limit = allowed > kSharedDefaultMax
                           ? std::min(allowed, kSharedOptInMax - of_arrays.least)
                           : kSharedDefaultMax - of_arrays.least;
  if (l.shared_bytes > limit) {
    *reason = format(
        "%zu bytes of dynamic shared memory: at most %zu without (or beyond) "
        "cudaFuncSetAttribute",
        l.shared_bytes, limit);
    return cudaErrorInvalidValue;
  }
  const uint64_t blocks = uint64_t{l.grid[0]} * l.grid[1] * l.grid[2];
  if (l.cooperative != 0 && blocks > blocks_resident(threads, l.shared_bytes)) {
    *reason = format("a cooperative grid of %zu blocks: at most %zu are resident", blocks,
                     blocks_resident(threads, l.shared_bytes));
    return cudaErrorCooperativeLaunchTooLarge;
  }
  return cudaSuccess;
}

// --- Launching.

uint32_t Runtime::next_launch_number() {
  if (++launch_number_ > kLaunchNumberMax) {
    arena_.clear_shadow();
    Module::clear_shadows();
    launch_number_ = 1;
  }
  return launch_number_;
}

// The arguments are copied now, as CUDA does; each run of the graph starts from that copy.
void Runtime::record(const McEmuLaunch& launch, McEmuGraph* graph) {
  const auto* bytes = static_cast<const unsigned char*>(launch.arguments);
  std::vector<unsigned char> arguments(bytes, bytes + launch.arguments_bytes);
  graph->work.push_back([this, launch, arguments]() {
    alignas(64) unsigned char copy[kArgumentBytesMax];
    std::memcpy(copy, arguments.data(), arguments.size());
    McEmuLaunch repeated = launch;
    repeated.arguments = copy;
    repeated.stream = nullptr;
    this->launch(repeated);
  });
}

int Runtime::launch(const McEmuLaunch& launch) {
  if (Worker::current() != nullptr) {
    mc_emu_unsupported("dynamic parallelism (a launch in device code)");
    return cudaErrorNotSupported;
  }
  if (!is_started_ && start(nullptr) != 0) return set_last_error(cudaErrorInitializationError);
  if (McEmuGraph* const graph = capture_of(static_cast<McEmuStream*>(launch.stream))) {
    if (launch.arguments_bytes > kArgumentBytesMax) return set_last_error(cudaErrorInvalidValue);
    record(launch, graph);
    return cudaSuccess;
  }
  if (sticky_error_ != 0) return set_last_error(sticky_error_);
  if (call_.is_taken()) call_.note_late_work("a kernel was launched");
  const Module* module = Module::containing(launch.code);
  std::string reason;
  const int error = check_rules(launch, module, &reason);
  if (error != cudaSuccess) {
    Finding f;
    f.kind = "launch_error";
    f.kernel = launch.kernel;
    f.pc = reinterpret_cast<uintptr_t>(launch.code);
    std::snprintf(f.detail, sizeof f.detail, "%s", reason.c_str());
    report_.add(f);
    return set_last_error(error);
  }
  Job job;
  job.launch = &launch;
  job.module = module;
  job.number = next_launch_number();
  job.schedule = schedule_;
  job.num_blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  job.num_threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  call_.note_launch();
  arena_.open_all();
  const uint64_t begun = process_ns();
  run_job(&job);
  call_.note_kernel_ns(process_ns() - begun);
  arena_.close_all();
  sticky_error_ = job.error.load();
  return set_last_error(job.error.load());
}

void Runtime::add_worker() {
  pool_.emplace_back([this, i = static_cast<int>(pool_.size())] { worker_main(i); });
  pool_.back().detach();
}

// While a kernel runs, memory is open to all threads: so the process has none but ours, and the one
// that waits for them.  Irrevocable.
bool Runtime::start_workers_for_good() {
  while (static_cast<int>(pool_.size()) < num_workers_) add_worker();
  // The only calls that make threads, of those a process may make; x86-64's numbers are checked by
  // the sandbox.
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void Runtime::run_job(Job* job) {
  std::unique_lock lock(mutex_);
  const int wanted = job->launch->cooperative != 0
                         ? 1
                         : static_cast<int>(std::min<uint64_t>(
                               job->num_blocks, static_cast<uint64_t>(num_workers_)));
  while (static_cast<int>(pool_.size()) < wanted) add_worker();
  MC_EMU_CHECK(job_ == nullptr && running_ == 0 && wanted > 0);
  job->num_workers = wanted;
  job_ = job;
  ++generation_;
  wanted_ = wanted;
  running_ = wanted;
  wake_.notify_all();
  done_.wait(lock, [this] { return running_ == 0; });
  MC_EMU_CHECK(wanted_ == 0);
  job_ = nullptr;
}

void Runtime::worker_main(int) {
  use_alternate_stack();
  Worker* worker = new Worker;
  if (is_final_) forbid_other_calls();
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return generation_ != seen && wanted_ > 0; });
    seen = generation_;
    --wanted_;
    Job* job = job_;
    MC_EMU_CHECK(job != nullptr);
    lock.unlock();
    worker->run(job);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

}  // namespace mc::emu

// --- The host's interface.

using mc::emu::Runtime;

extern "C" {

int mc_emu_init(const McEmuOptions* options) { return Runtime::get().start(options); }
void mc_emu_set_schedule(uint64_t seed) { Runtime::get().set_schedule(seed); }
int mc_emu_sticky_error(void) { return Runtime::get().sticky_error(); }
void mc_emu_reset(void) { Runtime::get().reset(); }

void* mc_emu_arena_allocate(size_t size) {
  Runtime& runtime = Runtime::get();
  if (!runtime.is_started() && runtime.start(nullptr) != 0) return nullptr;
  return runtime.arena().allocate(size);
}

void mc_emu_arena_release(void* pointer) { Runtime::get().arena().release(pointer); }

void* mc_emu_arena_map(int fd, uint64_t offset, size_t size) {
  Runtime& runtime = Runtime::get();
  if (!runtime.is_started() && runtime.start(nullptr) != 0) return nullptr;
  return runtime.arena().map(fd, offset, size);
}

void mc_emu_open(const void* address) {
  Runtime::get().arena().open_at(reinterpret_cast<uintptr_t>(address));
}
void mc_emu_close(const void* address) {
  Runtime::get().arena().close_at(reinterpret_cast<uintptr_t>(address));
}
unsigned char* mc_emu_origins(const void* address) {
  const mc::emu::Arena& arena = Runtime::get().arena();
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  return arena.contains(at) ? reinterpret_cast<unsigned char*>(arena.view().origin_of(at))
                            : nullptr;
}
void mc_emu_note_to_host(size_t bytes) { Runtime::get().call().note_to_host(bytes); }
void mc_emu_copy(void* to, const void* from, size_t size) { Runtime::get().copy(to, from, size); }
void mc_emu_fill(void* to, int value, size_t size) { Runtime::get().fill(to, value, size); }
void mc_emu_begin_call(void) { Runtime::get().begin_call(); }
void mc_emu_end_forward(void) { Runtime::get().call().end_forward(); }
uint64_t mc_emu_moved_bytes(void) { return Runtime::get().call().moved(); }
int mc_emu_in_call(void) { return Runtime::get().call().is_active(); }
void mc_emu_note_output(const void* bytes, size_t size, const unsigned char* origins) {
  Runtime::get().call().note_output(bytes, size, reinterpret_cast<const mc::emu::Origin*>(origins));
}
void mc_emu_note_write(const void* to) { Runtime::get().note_write(to); }
void mc_emu_end_call(void) { Runtime::get().end_call(); }

void mc_emu_report_unsupported(const char* detail) {
  mc::emu::Finding f;
  f.kind = "unsupported";
  f.pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  std::snprintf(f.detail, sizeof f.detail, "%s", detail);
  Runtime::get().report().add(f);
}

}  // extern "C"
