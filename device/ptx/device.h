// SPDX-License-Identifier: Apache-2.0
//
// Device: a GPU in software, which executes PTX and finds what kernels do wrong.
//
// It holds memory, loads modules of PTX text and runs their kernels, all blocks and threads, warp
// by warp. Each access is checked: bounds, alignment, races, words that no thread wrote. A kernel
// cannot touch memory other than the device's, and a kernel that never ends is ended by its budget.
// It is no sandbox for what it computes, and no model of a GPU's time.
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
  size_t memory_bytes = size_t{4} << 30;  // Reserved, taken when touched.
  int lanes = 32;                         // 32, or 128 as on MUSA's mp_21.
  int workers = 1;                        // Threads that run a launch's blocks.
  bool counts = false;                    // Launches have LaunchReport::counts.
  int memory_descriptor = -1;             // A file for the memory, that others map too; or none.
};

// The arguments of a kernel, one after the other, each aligned to its size.
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
  bool is_cooperative = false;    // All blocks are under way at once, and have a grid barrier.
  int workers_max = kWorkersMax;  // Those of the device's that run the launch.
  bool checks_races = true;
  bool records_touched = false;  // With checks_races alone.
  // The order in which blocks and warps have their turns; 0 is that of their numbers.
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

// The place of a parameter among a kernel's arguments.
struct ParameterPlace {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

// Facts that a launch of a kernel needs.
struct KernelFacts {
  std::vector<ParameterPlace> parameters;
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
  // Addresses that allocate() leaves alone, from a multiple of 2 MiB on, for allocate_at().
  Result<uint64_t> reserve(size_t bytes, uint64_t wanted = 0);
  // kInvalidInput unless all bytes are in a range of reserve() and in no other allocation.
  Status allocate_at(uint64_t address, size_t bytes, std::string name);
  // kInvalidInput if no allocation begins there.
  Status release(uint64_t address);
  // The place of these bytes in this process, until their allocation is released. Null unless one
  // allocation holds them all.
  uint8_t* host(uint64_t address, size_t bytes) const;
  // Bytes of one allocation. kInvalidInput where they are not in one.
  Status copy_in(uint64_t to, std::span<const uint8_t> bytes);
  Status copy_out(uint64_t from, std::span<uint8_t> bytes) const;
  Status fill(uint64_t to, uint8_t byte, size_t size);

  // The origins of the allocation that holds the address, bits of Origin; 0 where nothing wrote it.
  // Copies and fills by way of host() are noted by the caller alone, kernels' accesses by launch().
  uint8_t origins(uint64_t address) const;
  void note_origins(uint64_t address, size_t bytes, uint8_t origins);
  // Bytes were written, as far as findings of unwritten memory are concerned.
  void note_write(uint64_t address, size_t bytes);
  // A copy within the device.
  void note_copy(uint64_t to, uint64_t from, size_t bytes);
  // A finding for bytes that reach the host or an output, and that follow from a kernel's read of
  // bytes that nothing wrote since they were allocated; null where none do (unwritten.h).
  std::shared_ptr<const Finding> unwritten_read(uint64_t address, size_t bytes) const;
  // True if nothing wrote some of the bytes.
  bool has_unwritten(uint64_t address, size_t bytes) const;
  // True: since the last call kernels read what is kGiven.
  bool take_given_read();

  // Parses and checks a module, and places its variables. Kernels are decoded when they are first
  // launched, or by decode().
  Result<ModuleId> load(std::string_view text);
  Status unload(ModuleId module);
  // Names of a module's kernels. Empty for an unknown module.
  std::vector<std::string> kernels(ModuleId module) const;
  // The address of a variable.
  Result<uint64_t> variable(ModuleId module, std::string_view name) const;
  // Its bytes.
  Result<size_t> variable_bytes(ModuleId module, std::string_view name) const;
  // kUnsupported where the kernel cannot be launched at all.
  Result<KernelFacts> facts(ModuleId module, std::string_view kernel);
  // Likewise, and with the line and the instruction where the executor lacks one of a kernel that
  // can be launched: a launch ends where a thread reaches it.
  Result<KernelFacts> decode(ModuleId module, std::string_view kernel);

  // Runs a kernel to its end. What the kernel did wrong is in the report; an Error is for a launch
  // that could not begin: an unknown kernel, unsupported instructions.
  Result<LaunchReport> launch(const LaunchOptions& options);
  // Ends a launch that has run for so long already. Any thread may call it.
  void cancel(std::chrono::duration<double> older_than);

 private:
  struct Impl;
  explicit Device(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_DEVICE_H_
