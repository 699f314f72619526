// SPDX-License-Identifier: Apache-2.0
//
// Device: a device that executes PTX without a GPU (device/ptx_driver), in a process of its own.
// A program uses it that finds our client in the place of libcudart.
//
//   MC_TRY(Device device, Device::start(options), "check");
//   run(program, device.channel());           // MC_DEVICE_CHANNEL names the descriptor.
//   MC_TRY(const DeviceReport report, device.finish(), "check");
#ifndef MC_CHECK_DEVICE_H_
#define MC_CHECK_DEVICE_H_

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/fd.h"
#include "core/result.h"
#include "sandbox/child.h"

namespace mc::check {

// Addresses of the device's memory and of its shadow, most of which are never touched; the program
// keeps those of the memory free.
inline constexpr uint64_t kReservedBytes = uint64_t{40} << 40;

struct DeviceOptions {
  std::filesystem::path library;     // libmc_ptx_executor.so
  std::filesystem::path executable;  // The program, in whose file its kernels are.
  uint64_t seed = 0;                 // The order of turns of blocks and warps follows from it.
  double timeout_s = 60;
  int64_t memory_bytes = 0;
  int fresh_byte = -1;         // The byte of new memory; -1: as the device has it.
  bool counts = false;         // Kernels are counted: DeviceReport::profile.
  bool shares_memory = false;  // The program may map the device's memory: device/client/managed.h.
};

struct DeviceReport {
  std::string findings;     // Lines of JSON (device/ptx_driver/report.h).
  std::string profile;      // The same for what kernels did (device/ptx_driver/driver.cc).
  int64_t launches = 0;     // Launches that were asked for.
  std::string unsupported;  // The first thing that was asked for and is not there.
};

class Device {
 public:
  // kUnavailable where the library cannot be loaded or the sandbox cannot be had.
  static Result<Device> start(const DeviceOptions& options);

  int channel() const { return channel_.get(); }
  // The file of the device's memory, or -1; and the address of its first byte there.
  int memory() const { return memory_.get(); }
  uint64_t memory_address() const { return memory_address_; }
  // A kernel that took half of the program's time ends, with a finding.
  void cancel();
  // False once the process has ended by itself or by a limit: nobody answers commands any more.
  bool is_alive();
  // The report, once the program has ended; without counts where a kernel runs on for seconds.
  // kUnavailable, with the reason, where the process has ended before.
  Result<DeviceReport> finish();

 private:
  Device(sandbox::Child child, Fd channel, Fd memory, uint64_t memory_address, Fd finish, Fd report)
      : child_(std::move(child)),
        channel_(std::move(channel)),
        memory_(std::move(memory)),
        memory_address_(memory_address),
        finish_(std::move(finish)),
        report_(std::move(report)) {}

  sandbox::Child child_;
  Fd channel_;
  Fd memory_;
  uint64_t memory_address_ = 0;
  Fd finish_;  // Its end is the sign that the program has ended.
  Fd report_;
};

}  // namespace mc::check

#endif  // MC_CHECK_DEVICE_H_
