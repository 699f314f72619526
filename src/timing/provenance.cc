// SPDX-License-Identifier: Apache-2.0
#include "timing/provenance.h"

#include <algorithm>
#include <filesystem>

#include "timing/occupancy.h"

namespace mc::timing {
namespace {

const std::string kCandidate = "candidate";  // The owner of its own kernels.

bool is_transfer(const task::KernelTime& kernel) { return kernel.name.starts_with('['); }

const OwnKernel* own_named(const std::vector<OwnKernel>& own, const std::string& name) {
  const auto it = std::ranges::find(own, name, &OwnKernel::name);
  return it == own.end() ? nullptr : &*it;
}

std::string owner_of(const TracedKernel& kernel, const std::vector<std::string>& own_libraries) {
  const bool is_own = std::ranges::find(own_libraries, kernel.owner) != own_libraries.end();
  return is_own ? kCandidate : std::filesystem::path(kernel.owner).filename().string();
}

// All launches that are alike, of all batches.
struct Launches {
  task::KernelTime kernel;  // Without launches, share and time_us, which are a call's.
  int64_t count = 0;
  double sum_us = 0;
  std::vector<double> launch_us;  // The mean in each batch.
};

task::KernelTime described(const TracedKernel& kernel, std::string owner, const OwnKernel* own) {
  task::KernelTime time;
  time.name = kernel.name;
  time.owner = std::move(owner);
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

void add(std::vector<Launches>& all, task::KernelTime kernel, const TracedKernel& traced) {
  auto it = std::ranges::find_if(
      all, [&](const Launches& known) { return are_alike(known.kernel, kernel); });
  if (it == all.end()) it = all.insert(it, Launches{std::move(kernel), 0, 0, {}});
  it->count += traced.launches;
  it->sum_us += traced.time_us;
  it->launch_us.push_back(traced.time_us / static_cast<double>(traced.launches));
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

Provenance find_owners(std::span<const TracedBatch> batches,
                       const std::vector<std::string>& own_libraries,
                       const std::vector<OwnKernel>& own_kernels) {
  Provenance found;
  std::vector<Launches> all;
  int calls = 0;
  for (const TracedBatch& batch : batches) {
    calls += batch.calls;
    for (const TracedKernel& kernel : batch.kernels) {
      const std::string owner = owner_of(kernel, own_libraries);
      add(all, described(kernel, owner, own_named(own_kernels, kernel.name)), kernel);
      found.is_late = found.is_late || kernel.late > 0;
    }
  }
  double all_us = 0;
  double kernels_us = 0;
  double own_us = 0;
  for (const Launches& launches : all) {
    all_us += launches.sum_us;
    if (is_transfer(launches.kernel)) continue;
    kernels_us += launches.sum_us;
    if (launches.kernel.owner == kCandidate) own_us += launches.sum_us;
  }
  for (Launches& launches : all) {
    task::KernelTime& kernel = launches.kernel;
    kernel.launches = static_cast<double>(launches.count) / calls;
    kernel.time_us = kernel.launches * *std::ranges::min_element(launches.launch_us);
    kernel.share = share(launches.sum_us, all_us);
    found.kernels.push_back(std::move(kernel));
  }
  found.own_share = share(own_us, kernels_us);
  std::ranges::stable_sort(found.kernels, std::greater<>(), &task::KernelTime::time_us);
  return found;
}

}  // namespace mc::timing
