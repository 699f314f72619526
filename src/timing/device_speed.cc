// SPDX-License-Identifier: Apache-2.0
#include "timing/device_speed.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/file.h"

namespace mc::timing {
namespace {

using Json = nlohmann::json;

constexpr size_t kFileMax = 64 << 10;

Result<DeviceSpeed> parse(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const DeviceSpeed speed{
        json.at("bandwidth_gbs").get<double>(), json.at("fp32_tflops").get<double>(),
        json.at("half_tflops").get<double>(), json.at("fill_gbs").get<double>()};
    const bool is_sound = speed.bandwidth_gbs > 0 && speed.fp32_tflops > 0 &&
                          speed.half_tflops > 0 && speed.fill_gbs > 0;
    if (is_sound) return speed;
  } catch (const Json::exception&) {
  }
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
    if (auto speed = parse(*text)) return std::move(speed).value();
  }
  MC_TRY(const execute::Reply reply,
         judge.ask(R"({"op": "time", "do": "speed"})", nullptr, limit_s), "device speed");
  MC_TRY(const DeviceSpeed speed, parse(reply.json), "device speed");
  std::error_code failure;
  std::filesystem::create_directories(file.parent_path(), failure);
  MC_TRY_VOID(write_file_atomically(file, reply.json), "device speed");
  return speed;
}

}  // namespace mc::timing
