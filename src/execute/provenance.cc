// SPDX-License-Identifier: Apache-2.0
#include "execute/provenance.h"

#include <algorithm>
#include <filesystem>

#include "execute/occupancy.h"

namespace mc::execute {
namespace {

bool is_transfer(const task::KernelTime& kernel) { return kernel.name.starts_with('['); }

const OwnKernel* own_named(const std::vector<OwnKernel>& own, const std::string& name) {
  const auto it = std::ranges::find(own, name, &OwnKernel::name);
  return it == own.end() ? nullptr : &*it;
}

std::string owner_of(const TracedKernel& kernel, const std::vector<std::string>& own_libraries,
                     const OwnKernel* own) {
  if (std::ranges::find(own_libraries, kernel.owner) != own_libraries.end()) return "candidate";
  if (kernel.owner == "graph" && own != nullptr) return "candidate";
  return std::filesystem::path(kernel.owner).filename().string();
}

}  // namespace

Provenance find_owners(const Traced& traced, const std::vector<std::string>& own_libraries,
                       const std::vector<OwnKernel>& own_kernels) {
  Provenance found;
  double total_us = 0;
  double own_us = 0;
  const double calls = traced.calls;
  for (const TracedKernel& kernel : traced.kernels) {
    const OwnKernel* own = own_named(own_kernels, kernel.name);
    task::KernelTime time;
    time.name = kernel.name;
    time.owner = owner_of(kernel, own_libraries, own);
    time.launches = static_cast<double>(kernel.launches) / calls;
    time.time_us = kernel.time_us / calls;
    time.grid = kernel.grid;
    time.block = kernel.block;
    time.registers = kernel.registers;
    time.spill_bytes = own == nullptr ? 0 : own->spill_bytes;
    time.shared_bytes = kernel.shared_bytes;
    time.occupancy = occupancy({kernel.block, kernel.registers, kernel.shared_bytes});
    found.is_late = found.is_late || kernel.late > 0;
    if (!is_transfer(time)) {
      total_us += time.time_us;
      if (time.owner == "candidate") own_us += time.time_us;
    }
    found.kernels.push_back(std::move(time));
  }
  found.kernel_us = total_us;
  found.own_share = total_us > 0 ? own_us / total_us : 0;
  double all_us = 0;
  for (const task::KernelTime& kernel : found.kernels) all_us += kernel.time_us;
  for (task::KernelTime& kernel : found.kernels) {
    kernel.share = all_us > 0 ? kernel.time_us / all_us : 0;
  }
  std::ranges::stable_sort(found.kernels, std::greater<>(), &task::KernelTime::time_us);
  return found;
}

}  // namespace mc::execute
