// SPDX-License-Identifier: Apache-2.0
//
// Device: a device that executes PTX without a GPU (device/ptx_driver), in a process of its own.  A
// program uses it if it is linked to our client in place of libcudart.
//
//   MC_TRY(Device device, Device::start(options), "check");
//   run(program, device.channel());           // MC_DEVICE_CHANNEL contains the descriptor.
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

// The address space of the device's memory and its shadow memory, most of which is never touched;
// the program keeps the addresses of the device's memory free.
inline constexpr uint64_t kReservedBytes = uint64_t{40} << 40;

struct DeviceOptions {
  std::filesystem::path library;     // libmc_ptx_executor.so
  std::filesystem::path executable;  // The program file that contains the kernels.
  uint64_t seed = 0;                 // Determines the order of blocks and warps.
  double timeout_s = 60;
  int64_t memory_bytes = 0;
  int fresh_byte = -1;  // The byte of new memory; -1: as the device has it.
  bool counts = false;  // Kernels are counted: DeviceReport::profile.
  // True if the program may map the device's memory: device/client/managed.h.
  bool shares_memory = false;
};

struct DeviceReport {
  std::string findings;     // Lines of JSON (device/ptx_driver/report.h).
  std::string profile;      // Lines of JSON with counts (device/ptx_driver/driver.cc).
  int64_t launches = 0;     // The number of requested launches.
  std::string unsupported;  // The first requested feature that the device lacks.
};

class Device {
 public:
  // kUnavailable where the library cannot be loaded or the sandbox does not work.
  static Result<Device> start(const DeviceOptions& options);

  int channel() const { return channel_.get(); }
  // The file of the device's memory, or -1; and the address of its first byte in the device
  // process.
  int memory() const { return memory_.get(); }
  uint64_t memory_address() const { return memory_address_; }
  // Ends a kernel that has taken half of the program's time, with a finding.
  void cancel();
  // False once the process has ended by itself or at a limit: commands get no response any more.
  bool is_alive();
  // The report, after the program has ended; without counts where a kernel keeps running for
  // seconds.  kUnavailable, with the reason, where the device process has ended earlier.
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
  Fd finish_;  // Its end signals that the program has ended.
  Fd report_;
};

}  // namespace mc::check

#endif  // MC_CHECK_DEVICE_H_
