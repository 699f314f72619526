// SPDX-License-Identifier: Apache-2.0
//
// Nvml: the state of the device's clocks, from the driver's management library.  It observes the
// device from outside; no context is created.
#ifndef MC_TIMING_NVML_H_
#define MC_TIMING_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "task/performance.h"

namespace mc::timing {

class Nvml {
 public:
  // The library for the device "GPU-…".  Null where there is no such library or device.
  static std::unique_ptr<Nvml> open(const std::string& uuid);
  ~Nvml();
  Nvml(const Nvml&) = delete;

  // Includes the current clocks in the minima and maxima of `clocks`.
  void sample(task::Clocks& clocks) const;

  // The number of the device's node below /dev: 3 of nvidia3.  Empty if NVML does not report it.
  std::optional<int> minor_number() const;

  // "580.65.06"
  std::string driver_version() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// Sorted names of the reasons in NVML's mask that lower clocks unexpectedly.
std::vector<std::string> throttling_of(uint64_t mask);

}  // namespace mc::timing

#endif  // MC_TIMING_NVML_H_
