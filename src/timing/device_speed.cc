// SPDX-License-Identifier: Apache-2.0
#include "timing/device_speed.h"

#include <algorithm>

#include "core/file.h"

namespace mc::timing {
namespace {

using Speeds = worker::JudgeTimeSpeedResponse;

constexpr size_t kFileMax = 64 << 10;

Result<DeviceSpeed> speed_of(const Speeds& response) {
  const DeviceSpeed speed{response.bandwidth_gbs, response.fp32_tflops, response.half_tflops};
  const bool is_sound = speed.bandwidth_gbs > 0 && speed.fp32_tflops > 0 && speed.half_tflops > 0;
  if (is_sound) return speed;
  return Error{ErrorCode::kProtocol, "no speeds of a device"};
}

}  // namespace

task::Floor floor_of(const DeviceSpeed& speed, const Work& work) {
  task::Floor floor;
  floor.bytes = static_cast<int64_t>(work.bytes);
  floor.operations = work.operations;
  floor.bandwidth_gbs = speed.bandwidth_gbs;
  floor.peak_tflops = work.is_half ? speed.half_tflops : speed.fp32_tflops;
  const double memory_us = work.bytes / (speed.bandwidth_gbs * 1e3);
  const double compute_us = work.operations / (floor.peak_tflops * 1e6);
  floor.bound = memory_us >= compute_us ? "memory" : "compute";
  floor.time_us = std::max(memory_us, compute_us);
  return floor;
}

Result<DeviceSpeed> find_device_speed(const std::filesystem::path& file, execute::Judge& judge,
                                      double limit_s) {
  if (const auto text = read_file(file, kFileMax)) {
    const auto response = Speeds::from_json(*text);  // The stored speeds.
    const auto speed = response ? speed_of(*response) : Result<DeviceSpeed>(response.error());
    if (speed) return *speed;
  }
  MC_TRY(const auto response, judge.call(worker::JudgeTimeSpeedRequest(), limit_s), "device speed");
  MC_TRY(const DeviceSpeed speed, speed_of(response.body), "device speed");
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  MC_TRY_VOID(write_file_atomically(file, response.body.to_json()), "device speed");
  return speed;
}

}  // namespace mc::timing
