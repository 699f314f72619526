// SPDX-License-Identifier: Apache-2.0
//
// Driver: the functions of CUDA's driver API that the executor of commands (device/cuda) calls, for
// a device in software (ptx/device.h).
//
// The executor is linked with this library in place of libcuda.so, so that client, commands and
// device process are the same as on a GPU.  The calls are in calls_device.cc, calls_memory.cc,
// calls_modules.cc and calls_streams.cc; all of them act on the one Driver of the process.
//
// Work is done when it is queued: streams keep their order, and nothing runs beside the caller.
// Which work might run at once on a GPU, stream_order.h says.
// Memory is allocated by the byte (cuMemGetAllocationGranularity returns 1), so that an access past
// the end of a tensor is one past the end of its allocation.
//
// It does not have what only timing needs (gates, memory of the host), textures, tensor maps and
// clusters: CUDA_ERROR_NOT_SUPPORTED.
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

// Memory that has a handle: new, or what another process exported.
struct Allocation {
  uint64_t bytes = 0;
  // A file with another process's bytes, which are copied when they are mapped, and back when they
  // are unmapped; -1 where there is none.
  int descriptor = -1;
  CUdeviceptr mapped = 0;  // 0: not yet.
};

struct Mapping {
  uint64_t bytes = 0;
  uint64_t offset = 0;  // In the allocation.
  CUmemGenericAllocationHandle handle = 0;
  bool is_new = true;  // Nothing was filled yet.
};

struct Function {
  ptx::ModuleId module = 0;
  std::string name;
  ptx::KernelFacts facts;
  int registers = 0;  // The registers of a thread; kRegisters where no machine code says them.
  int dynamic_bytes_max = 0;
};

struct Module {
  ptx::ModuleId id = 0;
  std::map<std::string, int, std::less<>> registers;  // Those that machine code says.
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

// An output of a candidate's.
struct OutputPart {
  uint64_t address = 0;
  uint64_t bytes = 0;
};

// Does its work; CUDA_SUCCESS where it could.
using Work = std::function<CUresult()>;
using Graph = std::vector<Work>;

struct Event {
  bool is_recorded = false;
  std::chrono::steady_clock::time_point time;
  Clock clock;                   // The work that comes before it.
  std::weak_ptr<Graph> capture;  // A stream that waits for the event is captured, too.
};

// The executor reserves two ranges of 256 GiB of addresses; variables of modules lie behind them.
inline constexpr uint64_t kAddresses = uint64_t{520} << 30;

class Driver {
 public:
  // The one of this process, since functions of the driver's API name none.
  static Driver& get();

  // Makes the device, once.
  CUresult start();
  // REQUIRES: start() succeeded.
  ptx::Device& device() { return *device_; }
  Report& report() { return report_; }

  // Does the work now, or notes it where the stream is being captured.  A fault of a kernel makes
  // each later call fail.
  CUresult queue(CUstream stream, Work work);
  // A call of forward begins, which was given so many bytes.
  void begin_call(uint64_t given_bytes);
  // It is over: a line of the report says who made its outputs (src/execute/decode.h reads it).
  void end_call(std::span<const OutputPart> outputs);
  // Bytes reach the host or the judge: a finding where they follow from unwritten memory.
  void check_unwritten(uint64_t address, uint64_t bytes);
  // A checked program's own code touches memory: a finding where work under way may touch it too.
  void note_host_access(const device::HostAccess& access);
  // The host wrote: weights before the first call, a value of its own during one.
  void note_host_write(uint64_t address, uint64_t bytes);
  // Work of the stream that began last touched these: a finding where another stream's may do so
  // at the same time (stream_order.h).
  void note_stream_access(const std::string& work, ptx::TouchedBytes bytes);
  // The next candidate: its findings and calls are new.
  void begin_candidate(uint64_t new_seed);
  CUresult fault() const { return fault_; }
  CUresult launch(ptx::LaunchOptions options, double occupancy = 0);
  // A line of JSON for each kernel that was launched since the last call, where the device counts.
  std::string take_profile();
  // A copy to or from what is not the device's memory.
  void report_refused_copy(uint64_t bytes);
  // A launch that does not begin. The device goes on.
  void report_refusal(const std::string& kernel, std::string why);
  // A kernel of which no machine code could be made: nothing of its module works on a GPU.
  CUresult refuse(const std::string& kernel, std::string why);

  // Threads of a warp: 32, or 128 where a candidate is for MUSA's mp_21 or mp_22. It is constant
  // from start() on.
  int warp_threads = 32;
  int memory_descriptor = -1;  // DeviceOptions; constant from start() on, too.
  bool counts = false;         // DeviceOptions; likewise, as the next.
  int workers = 1;
  bool checks_copies = false;  // Bytes that nothing wrote are a finding where the host copies them.
  int fresh_byte = -1;         // The byte of new memory; -1: the executor's.
  int64_t steps_factor = 1;    // The budget of a launch, in those of a candidate's.
  bool shows_printed = false;  // Text that kernels print goes to standard output.
  // The name that programs read.
  std::string name = kName;
  // The attributes that the candidate's device has.
  Description description;
  // The turns of blocks and warps follow from it in every other launch.
  uint64_t seed = 1;
  // Bytes that copies on the device put into another place of their allocation, in all.
  uint64_t bytes_moved = 0;
  // Memory that is mapped, in all.
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
  uint64_t calls_ = 0;             // The calls that are over, of this candidate.
  uint64_t launches_before_ = 0;   // The launches before the call.
  uint64_t kernel_us_ = 0;         // The processor time of its launches.
  uint64_t sectors_ = 0;           // Those that they moved, where the device counts.
  CUresult fault_ = CUDA_SUCCESS;
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_DRIVER_H_
