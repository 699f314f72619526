// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/driver.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/demangle.h"
#include "ptx_driver/description.h"

namespace mc::ptx_driver {
namespace {

// The processor time of all threads of this process.
uint64_t processor_us() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

// The step limit of a launch, in thousands of backward branches of warps: a few seconds of one
// core. One thread that computes all of the largest task needs fewer (JudgeOptions::cost_max).
constexpr int64_t kStepsMax = 100'000;
// Smaller launches end before another worker thread would start.
constexpr uint64_t kThreadsOfWorkers = 1 << 14;

CUresult fault_of(ptx::FindingKind kind) {
  switch (kind) {
    case ptx::FindingKind::kOutOfBoundsRead:
    case ptx::FindingKind::kOutOfBoundsWrite:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::FindingKind::kMisaligned:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::FindingKind::kAssertion:
      return CUDA_ERROR_ASSERT;
    case ptx::FindingKind::kStepLimit:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    default:
      return CUDA_ERROR_LAUNCH_FAILED;
  }
}

// The name of queued work in a text: "[memcpy]", or that of a kernel.
std::string name_of_work(const std::string& work) {
  return work.starts_with('[') ? work : demangle(work);
}

ptx::Finding stream_race(const std::string& name, const std::string& other) {
  return {.kind = ptx::FindingKind::kStreamRace,
          .kernel = name,
          .detail = "uses bytes that " + name_of_work(other) +
                    " of another stream uses, and nothing orders the two"};
}

uint64_t volume(const std::array<uint32_t, 3>& three) {
  return uint64_t{three[0]} * three[1] * three[2];
}

using Json = nlohmann::json;

Json json_of(const ptx::RequestCounts& counts) {
  return {{"requests", counts.requests}, {"sectors", counts.sectors}};
}

std::string line_of(const std::string& kernel, const KernelProfile& profile) {
  const ptx::Counts& counts = profile.counts;
  const Json line{{"kernel", demangle(kernel)},
                  {"launches", profile.launches},
                  {"threads", profile.threads},
                  {"occupancy", profile.occupancy},
                  {"instructions", counts.instructions},
                  {"lanes", counts.lanes},
                  {"loads", json_of(counts.loads)},
                  {"stores", json_of(counts.stores)},
                  {"atomics", json_of(counts.atomics)},
                  {"shared_passes", counts.shared_passes},
                  {"shared_passes_least", counts.shared_passes_least}};
  return text_of_line(line);
}

}  // namespace

Driver& Driver::get() {
  static auto* driver = new Driver;  // Never freed: calls may come while the process ends.
  return *driver;
}

ptx::Device& Driver::device() {
  MC_CHECK(device_ != nullptr);
  return *device_;
}

Driver& Driver::unstarted() {
  MC_CHECK(get().device_ == nullptr);
  return get();
}

CUresult Driver::start() {
  if (device_ != nullptr) return CUDA_SUCCESS;
  auto device = ptx::Device::create({.memory_bytes = kAddresses,
                                     .lanes = warp_threads,
                                     .workers = workers,
                                     .counts = counts,
                                     .memory_descriptor = memory_descriptor});
  if (!device) return CUDA_ERROR_OUT_OF_MEMORY;
  device_ = std::move(*device);
  return CUDA_SUCCESS;
}

CUresult Driver::queue(CUstream stream, Work work) {
  if (fault_ != CUDA_SUCCESS) return fault_;
  if (const auto capture = captures.find(stream); capture != captures.end()) {
    capture->second->push_back(std::move(work));
    return CUDA_SUCCESS;
  }
  order.begin(stream);
  return work();
}

void Driver::begin_candidate(uint64_t new_seed) {
  report_.forget();
  seed = new_seed;
  calls_ = 0;
  is_in_call_ = false;
}

void Driver::begin_call(uint64_t given_bytes) {
  is_in_call_ = true;
  is_given_nothing_ = given_bytes == 0;
  launches_before_ = launches_;
  kernel_us_ = sectors_ = 0;
  device_->take_given_read();
}

void Driver::end_call(std::span<const OutputPart> outputs) {
  MC_CHECK(launches_ >= launches_before_);
  is_in_call_ = false;
  CallRecord record{.number = ++calls_,
                    .launches = launches_ - launches_before_,
                    .kernel_us = kernel_us_,
                    .sectors = sectors_,
                    .reads_given = device_->take_given_read() || is_given_nothing_};
  for (const auto& [address, bytes] : outputs) {
    record.add(device_->origins(address), bytes);
    check_unwritten(address, bytes);
    if (const auto other = order.host_reads({address, address + bytes})) {
      report_.add(stream_race("[output]", *other));
    }
  }
  order.forget();
  report_.add(record);
}

void Driver::note_stream_access(const std::string& work, ptx::TouchedBytes bytes) {
  if (!order.is_recording()) return;
  const auto other = order.access({work, std::move(bytes)});
  if (other) report_.add(stream_race(work, *other));
}

void Driver::check_unwritten(uint64_t address, uint64_t bytes) {
  const auto read = device_->unwritten_read(address, bytes);
  if (read != nullptr) report_.add(*read);
  if (checks_copies && read == nullptr && device_->has_unwritten(address, bytes)) {
    report_.add({.kind = ptx::FindingKind::kUnwrittenCopy,
                 .kernel = "[memcpy]",
                 .detail = "bytes that nothing wrote reach the host, and its output follows from "
                           "them"});
  }
}

void Driver::note_host_access(const device::HostAccess& access) {
  if (!checks_copies) return;  // The program is not a checked one.
  const std::string what = access.writes != 0 ? "the host writes " : "the host reads ";
  if (access.is_managed == 0) {
    return report_.add({.kind = ptx::FindingKind::kHostAccess,
                        .kernel = "[host]",
                        .detail = what + "memory that only the device has"});
  }
  const auto other = order.host_touches(access);
  if (!other) return;
  report_.add({.kind = ptx::FindingKind::kHostRace,
               .kernel = "[host]",
               .detail = what + "managed memory that " + name_of_work(*other) +
                         " uses, and did not wait for it"});
}

void Driver::note_host_write(uint64_t address, uint64_t bytes) {
  device_->note_origins(address, bytes, is_in_call_ ? ptx::kByHost : ptx::kGiven);
}

void Driver::report_refused_copy(uint64_t bytes) {
  if (fault_ != CUDA_SUCCESS) return;
  report_.add({.kind = ptx::FindingKind::kOutOfBoundsRead,
               .kernel = "[memcpy]",
               .detail = std::to_string(bytes) +
                         " bytes are not within the device's memory: a pointer of the host, or "
                         "the wrong direction"});
}

void Driver::report_refusal(const std::string& kernel, std::string why) {
  report_.add({.kind = ptx::FindingKind::kLaunchLimit, .kernel = kernel, .detail = std::move(why)});
}

CUresult Driver::refuse(const std::string& kernel, std::string why) {
  report_refusal(kernel, std::move(why));
  return fault_ = CUDA_ERROR_INVALID_PTX;
}

CUresult Driver::launch(ptx::LaunchOptions options, double occupancy) {
  options.steps_max = kStepsMax * steps_factor;
  options.records_touched = order.is_recording();
  if (volume(options.grid) * volume(options.block) < kThreadsOfWorkers) options.workers_max = 1;
  // Every other launch runs blocks and warps in numerical order.
  if (++launches_ % 2 == 0) options.seed = seed + launches_;
  const uint64_t begun_us = processor_us();
  auto report = device_->launch(options);
  kernel_us_ += processor_us() - begun_us;
  if (!report) {
    report_.add_unsupported(options.kernel, report.error().message);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (counts) add_profile(options, occupancy, report->counts);
  for (const ptx::Finding& finding : report->findings) report_.add(finding);
  note_stream_access(options.kernel, std::move(report->touched));
  if (shows_printed) {
    std::fputs(report->printed.c_str(), stdout);
    std::fflush(stdout);
  }
  if (report->is_complete) return CUDA_SUCCESS;
  const auto ending = std::ranges::find_if(
      report->findings, [](const ptx::Finding& one) { return ptx::ends_launch(one.kind); });
  if (ending == report->findings.end()) return fault_ = CUDA_ERROR_LAUNCH_FAILED;
  if (ending->kind == ptx::FindingKind::kUnsupported) return CUDA_ERROR_NOT_SUPPORTED;
  // A launch that could not begin is not a sticky error.
  if (ending->kind == ptx::FindingKind::kLaunchLimit) return CUDA_ERROR_INVALID_VALUE;
  return fault_ = fault_of(ending->kind);
}

void Driver::add_profile(const ptx::LaunchOptions& options, double occupancy,
                         const ptx::Counts& counts_of_launch) {
  KernelProfile& profile = profiles_[options.kernel];
  ++profile.launches;
  profile.threads += volume(options.grid) * volume(options.block);
  profile.occupancy = occupancy;
  profile.counts.add(counts_of_launch);
  const auto& [loads, stores, atomics] =
      std::tie(counts_of_launch.loads, counts_of_launch.stores, counts_of_launch.atomics);
  sectors_ += loads.sectors + stores.sectors + atomics.sectors;
}

std::string Driver::take_profile() {
  std::string lines;
  for (const auto& [kernel, profile] : std::exchange(profiles_, {})) {
    lines += line_of(kernel, profile) + "\n";
  }
  return lines;
}

}  // namespace mc::ptx_driver
