// SPDX-License-Identifier: Apache-2.0
#include "timing/provenance.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <utility>

#include "timing/occupancy.h"

namespace mc::timing {
namespace {

const std::string kCandidate = "candidate";  // The owner of the candidate's own kernels.

bool is_transfer(const std::string& name) { return name == "[memcpy]" || name == "[memset]"; }

const OwnKernel* own_named(const std::vector<OwnKernel>& own, const std::string& name) {
  const auto it = std::ranges::find(own, name, &OwnKernel::name);
  return it == own.end() ? nullptr : &*it;
}

std::array<int64_t, 3> three(const std::vector<int64_t>& numbers) {
  std::array<int64_t, 3> result{};
  std::copy_n(numbers.begin(), std::min(numbers.size(), result.size()), result.begin());
  return result;
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

Provenance find_owners(const std::vector<worker::Kernel>& kernels,
                       const std::vector<OwnKernel>& own_kernels) {
  Provenance found;
  double all_us = 0;
  double kernels_us = 0;
  double own_us = 0;
  for (const worker::Kernel& kernel : kernels) {
    const bool is_own = kernel.owner.empty();
    all_us += kernel.us;
    kernels_us += is_transfer(kernel.name) ? 0 : kernel.us;
    own_us += is_own ? kernel.us : 0;
  }
  for (const worker::Kernel& kernel : kernels) {
    const bool is_own = kernel.owner.empty();
    const OwnKernel* own = is_own ? own_named(own_kernels, kernel.name) : nullptr;
    task::KernelTime time;
    time.name = kernel.name;
    time.owner = is_own ? kCandidate : std::filesystem::path(kernel.owner).filename().string();
    time.launches = static_cast<double>(kernel.launches);
    time.time_us = kernel.us;
    time.share = share(kernel.us, all_us);
    time.grid = three(kernel.grid);
    time.block = three(kernel.block);
    time.registers = kernel.registers;
    time.spill_bytes = own == nullptr ? 0 : own->spill_bytes;
    time.shared_bytes = kernel.shared_bytes;
    time.occupancy = occupancy({time.block, time.registers, time.shared_bytes});
    found.kernels.push_back(std::move(time));
  }
  found.own_share = share(own_us, kernels_us);
  std::ranges::stable_sort(found.kernels, std::greater<>(), &task::KernelTime::time_us);
  return found;
}

}  // namespace mc::timing
