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

// What PyTorch's own kernels are called; a candidate may name its kernels as it likes.
bool is_borrowed(const std::string& name) {
  return name.starts_with("_ZN2at") || name.starts_with("_ZN3c10");
}

std::string owner_of(const TracedKernel& kernel, const std::vector<std::string>& own_libraries,
                     const OwnKernel* own) {
  const bool launches_own = std::ranges::find(own_libraries, kernel.owner) != own_libraries.end();
  if (launches_own) return own == nullptr ? "a library" : "candidate";
  const bool is_own_in_graph = kernel.owner == "graph" && own != nullptr &&
                               !is_borrowed(own->name) && own->registers == kernel.registers;
  if (is_own_in_graph) return "candidate";
  return std::filesystem::path(kernel.owner).filename().string();
}

task::KernelTime time_of(const TracedKernel& kernel, std::string owner, const OwnKernel* own) {
  task::KernelTime time;
  time.name = kernel.name;
  time.owner = std::move(owner);
  time.launches = static_cast<double>(kernel.launches);
  time.time_us = kernel.time_us;
  time.grid = kernel.grid;
  time.block = kernel.block;
  time.registers = kernel.registers;
  time.spill_bytes = own == nullptr ? 0 : own->spill_bytes;
  time.shared_bytes = kernel.shared_bytes;
  time.occupancy = occupancy({kernel.block, kernel.registers, kernel.shared_bytes});
  return time;
}

bool are_alike(const task::KernelTime& one, const task::KernelTime& other) {
  return one.name == other.name && one.owner == other.owner && one.grid == other.grid &&
         one.block == other.block && one.shared_bytes == other.shared_bytes;
}

void add(std::vector<task::KernelTime>& kernels, task::KernelTime time) {
  const auto it =
      std::ranges::find_if(kernels, [&](const auto& known) { return are_alike(known, time); });
  if (it == kernels.end()) {
    kernels.push_back(std::move(time));
    return;
  }
  it->launches += time.launches;
  it->time_us += time.time_us;
}

}  // namespace

Provenance find_owners(const Traced& traced, const std::vector<std::string>& own_libraries,
                       const std::vector<OwnKernel>& own_kernels) {
  Provenance found;
  for (const TracedKernel& kernel : traced.kernels) {
    const OwnKernel* own = own_named(own_kernels, kernel.name);
    add(found.kernels, time_of(kernel, owner_of(kernel, own_libraries, own), own));
    found.is_late = found.is_late || kernel.late > 0;
  }
  double all_us = 0;
  double own_us = 0;
  for (task::KernelTime& kernel : found.kernels) {
    kernel.launches /= traced.calls;
    kernel.time_us /= traced.calls;
    all_us += kernel.time_us;
    if (is_transfer(kernel)) continue;
    found.kernel_us += kernel.time_us;
    if (kernel.owner == "candidate") own_us += kernel.time_us;
  }
  for (task::KernelTime& kernel : found.kernels) {
    kernel.share = all_us > 0 ? kernel.time_us / all_us : 0;
  }
  found.own_share = found.kernel_us > 0 ? own_us / found.kernel_us : 0;
  std::ranges::stable_sort(found.kernels, std::greater<>(), &task::KernelTime::time_us);
  return found;
}

}  // namespace mc::execute
