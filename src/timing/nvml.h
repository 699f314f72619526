// SPDX-License-Identifier: Apache-2.0
//
// Nvml: what the device's clocks do, asked of the driver's management library.  Looks at the device
// from outside; no context is created.
#ifndef MC_TIMING_NVML_H_
#define MC_TIMING_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "task/verdict.h"

namespace mc::timing {

class Nvml {
 public:
  // The library for the device "GPU-…".  Null where there is no such library or device.
  static std::unique_ptr<Nvml> open(const std::string& uuid);
  ~Nvml();
  Nvml(const Nvml&) = delete;

  // Takes the clocks of this moment into account.
  void look(task::Clocks& clocks) const;

  // The number of its node below /dev: 3 of nvidia3.  Empty if NVML does not report it.
  std::optional<int> minor_number() const;

  // "580.65.06"
  std::string driver_version() const;

 private:
  struct Library;
  explicit Nvml(std::unique_ptr<Library> library);
  std::unique_ptr<Library> library_;
};

// Names of the reasons in NVML's mask that lower clocks against the candidate's interest, sorted.
std::vector<std::string> throttling_of(uint64_t mask);

}  // namespace mc::timing

#endif  // MC_TIMING_NVML_H_
