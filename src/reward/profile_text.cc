// SPDX-License-Identifier: Apache-2.0
#include "reward/profile_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/demangle.h"
#include "task/text.h"

namespace mc::reward {
namespace {

using task::Estimate;
using task::KernelTime;
using task::Performance;

constexpr size_t kKernelsMax = 4;
constexpr size_t kOwnersMax = 3;
constexpr double kTinyUs = 5;             // The gap after a kernel is 1 to 2 us.
constexpr double kLaunchesMany = 4;       // The number in each call.
constexpr double kShareWorthAHint = 0.1;  // The share of the device time.
constexpr double kOwnShareFull = 0.95;
constexpr double kOccupancyLow = 0.4;
constexpr int64_t kBlocksFew = 100;  // Devices have about as many multiprocessors, or more.
constexpr double kFloorFar = 0.6;    // A share of the roofline's speed.
constexpr double kFloorNear = 0.9;

// ---- Numbers ------------------------------------------------------------------------------------

// The number with three digits, or more before the point: "0.42", "8.20", "21.2", "2900".
std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

// "16.8 MB" of 16777216 bytes.
std::string amount(double value, std::string_view unit) {
  constexpr std::array kPrefixes = {"", "k", "M", "G", "T"};
  size_t i = 0;
  for (; value >= 1000 && i + 1 < kPrefixes.size(); ++i) value /= 1000;
  return i == 0 ? fmt::format("{:.0f} {}", value, unit)
                : fmt::format("{} {}{}", number(value), kPrefixes[i], unit);
}

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

// "128x4" of {128, 4, 1}.
std::string size_of(const std::array<int64_t, 3>& sizes) {
  size_t num = sizes.size();
  while (num > 1 && sizes[num - 1] == 1) --num;
  return fmt::format("{}", fmt::join(sizes.begin(), sizes.begin() + num, "x"));
}

// ---- Names --------------------------------------------------------------------------------------

// The demangled name: "ns::row_sum<float>" of "_ZN2ns7row_sumIfEEvPKf".
std::string kernel_name(const std::string& mangled) {
  constexpr size_t kNameBytesMax = 80;
  return named(task::plain_line(demangle(mangled), kNameBytesMax));
}

bool is_own(const KernelTime& kernel) { return kernel.owner == "candidate"; }

// ---- Conclusions from the numbers ---------------------------------------------------------------

// The roofline time over the call's time: 1 at the roofline; 0 where it is not known.
double share_of_floor(const Performance& performance) {
  const double time_us = performance.time_us.median;
  return performance.floor.time_us > 0 && time_us > 0 ? performance.floor.time_us / time_us : 0;
}

bool is_worth_a_hint(const KernelTime& kernel) {
  return is_own(kernel) && kernel.share >= kShareWorthAHint;
}

int64_t num_blocks(const KernelTime& kernel) {
  return kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
}

// A kernel that leaves most of the device idle; null where there is none.
const KernelTime* find_small(const std::vector<KernelTime>& kernels) {
  const auto found = std::ranges::find_if(kernels, [](const KernelTime& kernel) {
    return is_worth_a_hint(kernel) && num_blocks(kernel) > 0 && num_blocks(kernel) < kBlocksFew;
  });
  return found == kernels.end() ? nullptr : &*found;
}

// ---- Sentences ----------------------------------------------------------------------------------

void describe_speedup(Page& page, std::string_view baseline, const Estimate& speedup,
                      const Estimate& time_us) {
  page.say(fmt::format("It is {:.2f} times as fast as {} ({:.2f} to {:.2f}), which takes {} us.",
                       speedup.median, baseline, speedup.low, speedup.high,
                       number(time_us.median)));
}

void describe_time(Page& page, const Performance& x) {
  page.say(fmt::format("Profile: a call takes {} us ({} to {}).", number(x.time_us.median),
                       number(x.time_us.low), number(x.time_us.high)));
  describe_speedup(page, "eager PyTorch", x.speedup_eager, x.time_eager_us);
  if (x.speedup_compile && x.time_compile_us) {
    describe_speedup(page, "torch.compile", *x.speedup_compile, *x.time_compile_us);
  }
  if (x.timing.mode == "host_synchronous") {
    say_hint(page,
             "forward waits for the device (a copy to the host, item(), a synchronisation): "
             "without that, calls follow each other at once.");
  }
}

void describe_rates(Page& page, const task::Floor& floor, double time_us) {
  std::vector<std::string> parts;
  if (floor.bytes > 0) {
    const auto bytes = static_cast<double>(floor.bytes);
    parts.push_back(fmt::format("moves {} of inputs and outputs at {} of {} GB/s",
                                amount(bytes, "B"), number(bytes / time_us / 1e3),
                                number(floor.bandwidth_gbs)));
  }
  if (floor.operations > 0) {
    parts.push_back(
        fmt::format("does the reference's {} at {} of {} TFLOP/s", amount(floor.operations, "FLOP"),
                    number(floor.operations / time_us / 1e6), number(floor.peak_tflops)));
  }
  if (!parts.empty()) page.say(fmt::format("It {}.", fmt::join(parts, " and ")));
}

void hint_at_floor(Page& page, const Performance& x) {
  const double share = share_of_floor(x);
  if (share >= kFloorNear) {
    say_hint(page, "it is close to the floor; little is left to gain.");
  } else if (const KernelTime* small = share < kFloorFar ? find_small(x.kernels) : nullptr) {
    say_hint(page, fmt::format("{} has only {} blocks, so that most of the device is idle and each "
                               "block waits for memory alone: spread the work over more blocks and "
                               "threads.",
                               kernel_name(small->name), num_blocks(*small)));
  } else if (share < kFloorFar) {
    say_hint(page, x.floor.bound == "compute"
                       ? "let each value that is loaded serve many operations (tiles in shared "
                         "memory and registers), and use tensor cores where dtype and tolerance "
                         "allow."
                       : "read and write each element once, in wide coalesced accesses, and fuse "
                         "kernels so that what lies between them needs no memory.");
  }
}

void describe_floor(Page& page, const Performance& x) {
  const double share = share_of_floor(x);
  if (!(share > 0)) return;
  page.say(fmt::format(
      "Bound by {}: the floor on this device is {} us; the call runs at {} of its speed.",
      named(x.floor.bound), number(x.floor.time_us), percent(share)));
  describe_rates(page, x.floor, x.time_us.median);
  hint_at_floor(page, x);
}

std::string launches_text(double launches) {
  return fmt::format("{:.{}f} launch{}", launches, launches == std::floor(launches) ? 0 : 1,
                     launches == 1 ? "" : "es");
}

void describe_kernel(Page& page, const KernelTime& kernel) {
  std::vector<std::string> parts = {fmt::format("{} registers", kernel.registers)};
  if (kernel.spill_bytes > 0) {
    parts.push_back(fmt::format("{} bytes spilled", kernel.spill_bytes));
  } else if (is_own(kernel)) {
    parts.emplace_back("no spills");
  }
  if (kernel.shared_bytes > 0) {
    parts.push_back(fmt::format("{} bytes of shared memory", kernel.shared_bytes));
  }
  parts.push_back("occupancy " + percent(kernel.occupancy));
  page.say(fmt::format("Kernel {}{}: {} us a call ({}) in {}, grid {}, block {}; {}.",
                       kernel_name(kernel.name), is_own(kernel) ? "" : " of " + named(kernel.owner),
                       number(kernel.time_us), percent(kernel.share),
                       launches_text(kernel.launches), size_of(kernel.grid), size_of(kernel.block),
                       fmt::join(parts, ", ")));
}

void hint_at_launches(Page& page, const std::vector<KernelTime>& kernels) {
  double launches = 0;
  double share = 0;
  for (const KernelTime& kernel : kernels) {
    if (!(kernel.time_us < kTinyUs * kernel.launches)) continue;
    launches += kernel.launches;
    share += kernel.share;
  }
  if (!(launches >= kLaunchesMany && share >= kShareWorthAHint)) return;
  say_hint(page, fmt::format("{} a call are shorter than {:.0f} us, so that the gaps between them "
                             "count: fuse them into fewer kernels.",
                             launches_text(launches), kTinyUs));
}

void hint_at_spills(Page& page, const std::vector<KernelTime>& kernels) {
  const auto found = std::ranges::find_if(kernels, [](const KernelTime& kernel) {
    return is_worth_a_hint(kernel) && kernel.spill_bytes > 0;
  });
  if (found == kernels.end()) return;
  say_hint(page, fmt::format("{} spills registers to memory: hold fewer values at a time, or "
                             "allow more registers a thread with __launch_bounds__.",
                             kernel_name(found->name)));
}

void hint_at_occupancy(Page& page, const std::vector<KernelTime>& kernels) {
  const auto found = std::ranges::find_if(kernels, [](const KernelTime& kernel) {
    return is_worth_a_hint(kernel) && kernel.occupancy > 0 && kernel.occupancy < kOccupancyLow;
  });
  if (found == kernels.end()) return;
  say_hint(page, fmt::format("few warps of {} fit on a multiprocessor at a time: use fewer "
                             "registers a thread, less shared memory a block, or blocks of 128 to "
                             "256 threads.",
                             kernel_name(found->name)));
}

void describe_own_share(Page& page, const Performance& x) {
  if (!(x.own_share < kOwnShareFull)) return;
  std::set<std::string> owners;
  for (const KernelTime& kernel : x.kernels) {
    if (!is_own(kernel) && owners.size() < kOwnersMax) owners.insert(named(kernel.owner));
  }
  page.say(fmt::format("Its own kernels take {} of the device time, others{} the rest.",
                       percent(x.own_share),
                       owners.empty() ? "" : fmt::format(" ({})", fmt::join(owners, ", "))));
  say_hint(page,
           "do that work in the candidate's own kernels, and drop copies and fills that no "
           "output needs.");
}

void describe_kernels(Page& page, const Performance& x) {
  const size_t num = std::min(x.kernels.size(), kKernelsMax);
  for (size_t i = 0; i < num; ++i) describe_kernel(page, x.kernels[i]);
  say_how_many_more(page, x.kernels.size(), kKernelsMax, "kernels");
  if (x.kernels.empty()) return;
  describe_own_share(page, x);
  hint_at_launches(page, x.kernels);
  hint_at_spills(page, x.kernels);
  if (share_of_floor(x) < kFloorFar) hint_at_occupancy(page, x.kernels);
}

}  // namespace

void write_profile(Page& page, const Performance& performance) {
  describe_time(page, performance);
  describe_floor(page, performance);
  describe_kernels(page, performance);
}

}  // namespace mc::reward
