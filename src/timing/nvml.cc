// SPDX-License-Identifier: Apache-2.0
#include "timing/nvml.h"

#include <algorithm>

#include <dlfcn.h>

namespace mc::timing {
namespace {

constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr unsigned kTextBytes = 96;

// Reasons from nvmlClocksEventReasons*, except consequences of idling and of settings.
struct Reason {
  uint64_t bit;
  const char* name;
};
constexpr Reason kReasons[] = {
    {0x04, "power_cap"},        {0x08, "hardware_slowdown"}, {0x10, "sync_boost"},
    {0x20, "software_thermal"}, {0x40, "hardware_thermal"},  {0x80, "power_brake"},
};

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  void* device = nullptr;
  int (*clock)(void*, int, unsigned*) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*minor)(void*, unsigned*) = nullptr;  // Null in a library without the function.
  int (*shutdown)() = nullptr;

  template <typename Function>
  bool find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
    return function != nullptr;
  }
};

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}

Nvml::~Nvml() {
  library_->shutdown();
  ::dlclose(library_->handle);
}

std::unique_ptr<Nvml> Nvml::open(const std::string& uuid) {
  auto library = std::make_unique<Library>();
  library->handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library->handle == nullptr) return nullptr;
  int (*init)() = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  const bool complete =
      library->find(init, "nvmlInit_v2") && library->find(by_uuid, "nvmlDeviceGetHandleByUUID") &&
      library->find(library->clock, "nvmlDeviceGetClockInfo") &&
      library->find(library->driver, "nvmlSystemGetDriverVersion") &&
      library->find(library->shutdown, "nvmlShutdown") &&
      library->find(library->reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  library->find(library->minor, "nvmlDeviceGetMinorNumber");
  if (!complete || init() != 0) {
    ::dlclose(library->handle);
    return nullptr;
  }
  auto nvml = std::unique_ptr<Nvml>(new Nvml(std::move(library)));
  return by_uuid(uuid.c_str(), &nvml->library_->device) == 0 ? std::move(nvml) : nullptr;
}

void Nvml::sample(task::Clocks& clocks) const {
  unsigned mhz = 0;
  if (library_->clock(library_->device, kClockSm, &mhz) == 0) {
    clocks.sm_mhz_min = clocks.sm_mhz_min == 0 ? mhz : std::min<int64_t>(clocks.sm_mhz_min, mhz);
    clocks.sm_mhz_max = std::max<int64_t>(clocks.sm_mhz_max, mhz);
  }
  if (library_->clock(library_->device, kClockMemory, &mhz) == 0) clocks.memory_mhz = mhz;
  unsigned long long mask = 0;
  if (library_->reasons(library_->device, &mask) != 0) return;
  for (std::string& name : throttling_of(mask)) {
    if (std::ranges::find(clocks.throttling, name) == clocks.throttling.end()) {
      clocks.throttling.push_back(std::move(name));
    }
  }
  std::ranges::sort(clocks.throttling);
}

std::optional<int> Nvml::minor_number() const {
  unsigned number = 0;
  if (library_->minor == nullptr || library_->minor(library_->device, &number) != 0) {
    return std::nullopt;
  }
  return static_cast<int>(number);
}

std::string Nvml::driver_version() const {
  char version[kTextBytes] = "";
  library_->driver(version, kTextBytes);
  return version;
}

std::vector<std::string> throttling_of(uint64_t mask) {
  std::vector<std::string> names;
  for (const Reason& reason : kReasons) {
    if ((mask & reason.bit) != 0) names.emplace_back(reason.name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace mc::timing
