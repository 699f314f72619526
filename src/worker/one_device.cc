// SPDX-License-Identifier: Apache-2.0
#include "worker/one_device.h"

#include <cstdlib>

namespace mc::worker {

std::vector<std::string> environment_of_one_device() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const char* order = std::getenv("CUDA_DEVICE_ORDER");
  const std::string devices = visible != nullptr ? visible : "0";
  std::vector<std::string> variables = {"CUDA_VISIBLE_DEVICES=" +
                                        devices.substr(0, devices.find(','))};
  if (order != nullptr) variables.push_back(std::string("CUDA_DEVICE_ORDER=") + order);
  return variables;
}

}  // namespace mc::worker
