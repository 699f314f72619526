// SPDX-License-Identifier: Apache-2.0
//
// Driver: the functions of CUDA's driver API that the executor of commands (device/cuda) calls, for
// a device in software (ptx/device.h).
//
// The executor is linked with this library in place of libcuda.so, so that client, commands and
// device process are the same as on a GPU.  The calls are in calls_device.cc, calls_memory.cc,
// calls_modules.cc and calls_streams.cc; all of them act on the one Driver of the process.
//
// Work runs when it is queued: streams keep their order, and nothing runs concurrently with the
// caller.  stream_order.h finds out which work might run concurrently on a GPU.  Memory is
// allocated by the byte (cuMemGetAllocationGranularity returns 1), so that an access past the end
// of a tensor is past the end of its allocation.
//
// It returns CUDA_ERROR_NOT_SUPPORTED for features that only timing needs (gates, host memory),
// textures, tensor maps and clusters.
#ifndef MC_PTX_DRIVER_DRIVER_H_
#define MC_PTX_DRIVER_DRIVER_H_

#include <cuda.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "commands.h"
#include "ptx/device.h"
#include "ptx_driver/description.h"
#include "ptx_driver/report.h"
#include "ptx_driver/stream_order.h"

namespace mc::ptx_driver {

// Memory with a handle: new, or exported by another process.
struct Allocation {
  uint64_t bytes = 0;
  // A file with another process's bytes, which are copied at mapping and copied back at unmapping;
  // -1 for new memory.
  int descriptor = -1;
  CUdeviceptr mapped = 0;  // The address; 0: not mapped.
};

struct Mapping {
  uint64_t bytes = 0;
  uint64_t offset = 0;  // In the allocation.
  CUmemGenericAllocationHandle handle = 0;
  bool is_new = true;  // No fill has written to it.
};

struct Function {
  ptx::ModuleId module = 0;
  std::string name;
  ptx::KernelFacts facts;
  int registers = 0;  // Per thread; kRegisters if there is no machine code.
  int dynamic_bytes_max = 0;
};

struct Module {
  ptx::ModuleId id = 0;
  std::map<std::string, int, std::less<>> registers;  // From machine code.
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
};

// The launches of a kernel, where the device counts.
struct KernelProfile {
  uint64_t launches = 0;
  uint64_t threads = 0;
  double occupancy =
      0;  // That of the last launch: resident threads as a share of the possible ones.
  ptx::Counts counts;
};

// An output of the candidate.
struct OutputPart {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// Runs queued work; returns CUDA_SUCCESS or an error.
using Work = std::function<CUresult()>;
using Graph = std::vector<Work>;

struct Event {
  bool is_recorded = false;
  std::chrono::steady_clock::time_point time;
  Clock clock;                   // The work that comes before it.
  std::weak_ptr<Graph> capture;  // A stream that waits for the event is captured, too.
};

// The executor reserves two ranges of 256 GiB of addresses; variables of modules are behind them.
inline constexpr uint64_t kAddresses = uint64_t{520} << 30;

class Driver {
 public:
  // The process's one driver, since functions of the driver API have no parameter for it.
  static Driver& get();
  // The driver for a setting that the device reads as it is created.  REQUIRES: no start() yet.
  static Driver& unstarted();

  // Creates the device, at the first call.
  CUresult start();
  // REQUIRES: start() succeeded.
  ptx::Device& device();
  Report& report() { return report_; }

  // Runs the work now, or records it if the stream is being captured.  After a kernel's fault each
  // later call fails.
  CUresult queue(CUstream stream, Work work);
  // Begins a call of forward, whose inputs have `given_bytes` bytes.
  void begin_call(uint64_t given_bytes);
  // Ends the call: a line of the report has the origins of its outputs (src/execute/decode.h reads
  // it).
  void end_call(std::span<const OutputPart> outputs);
  // Reports bytes that reach the host or the judge and depend on unwritten memory.
  void check_unwritten(uint64_t address, uint64_t bytes);
  // Reports an access by a checked program's own code to memory that queued work may use.
  void note_host_access(const device::HostAccess& access);
  // Notes a write by the host: of weights before the first call, of its own values during a call.
  void note_host_write(uint64_t address, uint64_t bytes);
  // Notes an access by the stream that began last; reports it if another stream may access the same
  // bytes concurrently (stream_order.h).
  void note_stream_access(const std::string& work, ptx::TouchedBytes bytes);
  // Begins the next candidate: clears findings and calls.
  void begin_candidate(uint64_t new_seed);
  CUresult fault() const { return fault_; }
  CUresult launch(ptx::LaunchOptions options, double occupancy = 0);
  // A line of JSON for each kernel launched since the last take_profile(), if `counts` is true.
  std::string take_profile();
  // Reports a copy to or from memory that is not the device's.
  void report_refused_copy(uint64_t bytes);
  // Reports a refused launch, after which the device continues.
  void report_refusal(const std::string& kernel, std::string why);
  // Reports a kernel for which there is no machine code: a GPU could not load its module.
  CUresult refuse(const std::string& kernel, std::string why);

  // Threads of a warp: 32, or 128 where a candidate is for MUSA's mp_21 or mp_22. Constant after
  // start().
  int warp_threads = 32;
  int memory_descriptor = -1;  // DeviceOptions; constant after start().
  bool counts = false;         // DeviceOptions; likewise, as the next member.
  int workers = 1;
  bool checks_copies = false;  // Reports unwritten bytes that the host copies.
  int fresh_byte = -1;         // The fill byte of new memory; -1: the executor's.
  int64_t steps_factor = 1;    // A launch's step limit, as a multiple of a candidate's.
  bool shows_printed = false;  // Text that kernels print goes to standard output.
  // The name that programs read.
  std::string name = kName;
  // The attributes that the candidate's device has.
  Description description;
  // The seed of the random order of blocks and warps in every other launch.
  uint64_t seed = 1;
  // The total of mapped memory.
  uint64_t bytes_used = 0;
  std::map<CUmemGenericAllocationHandle, Allocation> allocations;
  CUmemGenericAllocationHandle next_allocation = 1;
  std::map<CUdeviceptr, Mapping> mappings;
  std::map<CUstream, std::shared_ptr<Graph>> captures;  // Streams of one graph share it.
  StreamOrder order;

 private:
  void add_profile(const ptx::LaunchOptions& options, double occupancy,
                   const ptx::Counts& counts_of_launch);

  std::unique_ptr<ptx::Device> device_;
  Report report_;
  uint64_t launches_ = 0;
  std::map<std::string, KernelProfile> profiles_;
  bool is_in_call_ = false;
  bool is_given_nothing_ = false;  // The call has no inputs.
  uint64_t calls_ = 0;             // The candidate's finished calls.
  uint64_t launches_before_ = 0;   // The launches before the call.
  uint64_t kernel_us_ = 0;         // The processor time of its launches.
  uint64_t sectors_ = 0;           // Sectors that they moved, if `counts` is true.
  CUresult fault_ = CUDA_SUCCESS;
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DRIVER_H_
