// SPDX-License-Identifier: Apache-2.0
//
// Device: a GPU in software, which executes PTX and finds what kernels do wrong.
//
// It holds memory, loads modules of PTX text and runs their kernels, all blocks and threads, warp
// by warp. Each access is checked: bounds, alignment, races, words that no thread wrote. A kernel
// cannot touch memory other than the device's, and a kernel that never ends is ended by its budget.
// It is not a sandbox for this process, and does not model a GPU's time.
//
//   MC_TRY(const std::unique_ptr<Device> device, Device::create({}), "device");
//   MC_TRY(const uint64_t x, device->allocate(4 * n, "x"), "x");
//   MC_TRY(const ModuleId module, device->load(text), "load");
//   Arguments arguments = {};
//   arguments.add(x).add(int32_t{n});
//   MC_TRY(const LaunchReport report,
//          device->launch({.module = module, .kernel = "scale", .grid = {n / 256},
//                          .block = {256}, .arguments = arguments}), "launch");
//   for (const Finding& finding : report.findings) puts(describe(finding).c_str());
//
// The same calls give the same bytes and findings each time, with any number of workers, as long as
// races are checked. Kernels whose blocks communicate (by atomics or volatile accesses) run on one
// worker. Launches whose blocks race or fail are undone and run again on one. One thread uses a
// device at a time.
#ifndef MC_PTX_DEVICE_H_
#define MC_PTX_DEVICE_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/result.h"
#include "ptx/counts.h"
#include "ptx/finding.h"
#include "ptx/origin.h"

namespace mc::ptx {

// The value of %nsmid, which is that of an H100.
inline constexpr int kMultiprocessors = 132;
inline constexpr int kWorkersMax = 256;

struct DeviceOptions {
  size_t memory_bytes = size_t{4} << 30;  // Reserved; committed on first touch.
  int lanes = 32;                         // 32, or 128 as on MUSA's mp_21.
  int workers = 1;                        // Threads that run a launch's blocks.
  bool counts = false;                    // Launches have LaunchReport::counts.
  int memory_descriptor = -1;  // A file for the memory, shared with other processes; -1: none.
};

// The arguments of a kernel in sequence, each aligned to its size.
class Arguments {
 public:
  template <class T>
  Arguments& add(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return add_bytes(&value, sizeof value, alignof(T));
  }
  Arguments& add_bytes(const void* data, size_t size, size_t align);
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

using ModuleId = int;

struct LaunchOptions {
  ModuleId module = 0;
  std::string kernel = {};
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  uint32_t shared_bytes = 0;  // Dynamic shared memory.
  Arguments arguments = {};
  bool is_cooperative = false;    // All blocks run at once, with a grid barrier.
  int workers_max = kWorkersMax;  // The maximum number of workers for this launch.
  bool checks_races = true;
  bool records_touched = false;  // Requires checks_races.
  // The seed of the random order of blocks and warps; 0 is numerical order.
  uint64_t seed = 0;
  // Backward branches of warps, in thousands, until a launch is ended.
  int64_t steps_max = 2'000'000;
};

// Bytes of global memory, in the order of their addresses.
struct TouchedBytes {
  std::vector<Extent> read, written;
  std::vector<Extent> updated;  // Written by atomics and other strong accesses.
};

struct LaunchReport {
  std::vector<Finding> findings;  // Findings in the order of file and line.
  std::string printed;            // Text that printf wrote.
  bool is_complete = true;        // No finding ended the launch.
  TouchedBytes touched;           // Empty unless LaunchOptions asked for it.
  Counts counts;                  // Zeros unless DeviceOptions asked for it.
};

// The offset and size of a parameter among a kernel's arguments.
struct ParameterLayout {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// Properties of a kernel that a launch needs.
struct KernelFacts {
  std::vector<ParameterLayout> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t shared_bytes = 0;  // Static shared memory.
  uint32_t local_bytes = 0;
  int64_t threads_max = 1024;
  bool has_loops = false;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options);
  ~Device();

  // A device address, aligned to 256 bytes. The name is for findings.
  Result<uint64_t> allocate(size_t bytes, std::string name);
  // Reserves an address range for allocate_at(), aligned to 2 MiB, which allocate() does not use.
  Result<uint64_t> reserve(size_t bytes, uint64_t wanted = 0);
  // kInvalidInput unless all bytes are in a range of reserve() and in no other allocation.
  Status allocate_at(uint64_t address, size_t bytes, std::string name);
  // kInvalidInput if no allocation begins there.
  Status release(uint64_t address);
  // The address of these bytes in this process, valid until their allocation is released. Null
  // unless one allocation contains them all.
  uint8_t* host(uint64_t address, size_t bytes) const;
  // Copies bytes of one allocation; kInvalidInput if they are not in one allocation.
  Status copy_in(uint64_t to, std::span<const uint8_t> bytes);
  Status copy_out(uint64_t from, std::span<uint8_t> bytes) const;
  Status fill(uint64_t to, uint8_t byte, size_t size);

  // The origins (bits of Origin) of the allocation that contains the address; 0 if it is unwritten.
  // launch() notes kernels' accesses; the caller must note its own copies and fills through host().
  uint8_t origins(uint64_t address) const;
  void note_origins(uint64_t address, size_t bytes, uint8_t origins);
  // Marks bytes as written, for findings of unwritten memory.
  void note_write(uint64_t address, size_t bytes);
  // Notes a copy within the device.
  void note_copy(uint64_t to, uint64_t from, size_t bytes);
  // The finding for bytes that reach the host or an output and depend on a kernel's read of
  // unwritten memory; null if there is none (unwritten.h).
  std::shared_ptr<const Finding> unwritten_read(uint64_t address, size_t bytes) const;
  // True if nothing wrote some of the bytes.
  bool has_unwritten(uint64_t address, size_t bytes) const;
  // True if kernels read memory of origin kGiven since the last take_given_read().
  bool take_given_read();

  // Parses and checks a module, and places its variables. Kernels are decoded when they are first
  // launched, or by decode().
  Result<ModuleId> load(std::string_view text);
  Status unload(ModuleId module);
  // Names of a module's kernels. Empty for an unknown module.
  std::vector<std::string> kernels(ModuleId module) const;
  // The address of a variable.
  Result<uint64_t> variable(ModuleId module, std::string_view name) const;
  // The size of a variable.
  Result<size_t> variable_bytes(ModuleId module, std::string_view name) const;
  // Returns kUnsupported if the kernel cannot be launched.
  Result<KernelFacts> facts(ModuleId module, std::string_view kernel);
  // Like facts(), but also returns an error, with line and instruction, if an instruction
  // of the kernel is not supported. Such a kernel can be launched; the launch ends if a thread
  // reaches it.
  Result<KernelFacts> decode(ModuleId module, std::string_view kernel);

  // Runs a kernel to its end. The report has the kernel's faults; an Error means that the launch
  // could not begin, for example because of an unknown kernel.
  Result<LaunchReport> launch(const LaunchOptions& options);
  // Ends the running launch if it is older than `older_than`. Thread-safe.
  void cancel(std::chrono::duration<double> older_than);

 private:
  struct Impl;
  explicit Device(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_DEVICE_H_
